use std::net::TcpListener;
use std::time::{Duration, Instant};

use aftercommit_core::BrokerError;
use aftercommit_rabbitmq::{Config, connect};
use url::Url;

use crate::support::config;

async fn refused(config: Config) -> BrokerError {
    let since = Instant::now();
    let error = connect(config).await.err().expect("it must not connect");
    assert!(since.elapsed() < Duration::from_secs(6), "it took {:?}", since.elapsed());
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    error
}

#[tokio::test]
async fn a_wrong_password_is_denied() {
    let error = refused(config().with_credentials("guest", "hunter2")).await;
    assert!(matches!(error, BrokerError::Denied { .. }), "{error:?}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_missing_virtual_host_is_denied_and_named() {
    let mut url = Url::parse(&xtask::services::rabbitmq::url().unwrap()).unwrap();
    url.set_path("test-no-such-vhost");
    match refused(Config::new(url.as_str()).unwrap()).await {
        BrokerError::Denied { reason, .. } => assert!(reason.contains("test-no-such-vhost"), "{reason}"),
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn an_unreachable_host_is_named_quickly() {
    // Nobody listens there: the listener that had the port is gone.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    match refused(Config::new(&format!("amqp://u:hunter2@127.0.0.1:{port}")).unwrap()).await {
        BrokerError::Unreachable { address, .. } => assert_eq!(address, format!("127.0.0.1:{port}")),
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn a_host_that_never_answers_is_given_up() {
    // Accepts by its backlog and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("amqp://u:hunter2@{}", mute.local_addr().unwrap());
    let config = Config::new(&url).unwrap().with_connect_timeout(Duration::from_millis(300)).unwrap();
    match refused(config).await {
        BrokerError::Unreachable { reason, .. } => assert!(reason.contains("300ms"), "{reason}"),
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn what_does_not_speak_amqp_is_unreachable() {
    let management = Url::parse(&xtask::services::rabbitmq::management_url().unwrap()).unwrap();
    let url = format!("amqp://u:hunter2@{}:{}", management.host_str().unwrap(), management.port().unwrap());
    let error = refused(Config::new(&url).unwrap()).await;
    assert!(matches!(error, BrokerError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn wrong_credentials_for_the_management_api_are_denied() {
    let mut management = Url::parse(&xtask::services::rabbitmq::management_url().unwrap()).unwrap();
    management.set_password(Some("hunter2")).unwrap();
    let config = config().with_management(management.as_str()).unwrap();
    let queue = crate::support::Queue::with(config, "mgmt", None).await;
    let error = queue.broker.check(&queue.subscription).await.unwrap_err();
    assert!(matches!(error, BrokerError::Denied { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
