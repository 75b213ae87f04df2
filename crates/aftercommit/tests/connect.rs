//! URLs lead to products, or to an error that says what to do.

use aftercommit::{ConnectError, PRODUCTS, connect};

async fn refused(url: &str) -> Option<ConnectError> {
    connect(url).await.err()
}

#[tokio::test]
async fn an_unknown_scheme_names_the_known_ones_and_no_secret() {
    let error = refused("amqq://user:hunter2@host").await.unwrap().to_string();
    assert!(error.contains("\"amqq\"") && error.contains("amqps"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    assert!(!refused("hunter2").await.unwrap().to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_product_that_is_not_compiled_names_its_feature() {
    for product in PRODUCTS.iter().filter(|product| !product.compiled) {
        let error = refused(&format!("{}://127.0.0.1:1", product.schemes[0])).await.unwrap();
        assert!(error.to_string().contains(product.feature), "{error}");
    }
}

#[cfg(feature = "memory")]
#[tokio::test]
async fn memory_is_reached_by_url() {
    let broker = connect("memory:").await.map_err(|error| error.to_string());
    assert_eq!(broker.map(|broker| broker.product()), Ok("memory"));
}

#[cfg(feature = "sqlqueue")]
#[tokio::test]
async fn a_queue_file_is_reached_by_url() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlqueue:{}?visibility=5", folder.path().join("queue.db").display());
    let broker = connect(&url).await.map_err(|error| error.to_string());
    assert_eq!(broker.map(|broker| broker.product()), Ok("sqlqueue"));
    let error = refused("sqlqueue:queue.db?visibility=0").await.unwrap().to_string();
    assert!(error.contains("visibility"), "{error}");
}
