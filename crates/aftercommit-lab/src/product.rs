//! What differs between brokers: how the lab looks at a queue from outside, and how it removes it.

#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "sqlqueue")]
mod sqlqueue;

use aftercommit::PRODUCTS;
use async_trait::async_trait;

use crate::LabError;
use crate::site::Site;

/// A run's queue, looked at by nobody who consumes.
#[async_trait]
pub(crate) trait Outside: Send + Sync {
    /// What the server says it is.
    async fn version(&self) -> String;

    /// What is in the queue.
    async fn look(&self) -> Result<Sight, LabError>;

    /// Removes what the run made. What is not there is removed already.
    async fn remove(&self) -> Result<(), LabError>;
}

/// What is in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Waits for a consumer.
    pub(crate) ready: u64,
    /// Whether somebody may hold more, also one who died and of whose death the broker has not heard.
    pub(crate) held: bool,
}

/// The client that talks to a product, with its digest.
pub(crate) fn client(product: &str) -> (&'static str, &'static str) {
    match product {
        "rabbitmq" => (env!("AFTERCOMMIT_LAB_LAPIN"), env!("AFTERCOMMIT_LAB_LAPIN_SHA256")),
        _ => (env!("AFTERCOMMIT_LAB_SQLX"), env!("AFTERCOMMIT_LAB_SQLX_SHA256")),
    }
}

/// Opens the view from outside.
pub(crate) async fn outside(site: &Site) -> Result<Box<dyn Outside>, LabError> {
    match site.product.as_str() {
        #[cfg(feature = "rabbitmq")]
        "rabbitmq" => Ok(Box::new(rabbitmq::Rabbit::open(site).await?)),
        #[cfg(feature = "sqlqueue")]
        "sqlqueue" => Ok(Box::new(sqlqueue::File::open(site).await?)),
        other => Err(LabError::Usage(format!("the lab does not know the product {other:?}"))),
    }
}

/// The product that a URL names, if this build has it and its processes can share it.
pub(crate) fn of_url(url: &str) -> Result<&'static str, LabError> {
    // What has no colon may be a password: it is not repeated.
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let found = PRODUCTS.iter().find(|product| product.schemes.contains(&scheme));
    match found {
        None => Err(LabError::Usage(format!(
            "no broker has URLs with the scheme {scheme:?}; known are {}",
            known().join(", ")
        ))),
        Some(product) if product.name == "memory" => {
            Err(LabError::Usage("a broker in memory ends with its process: name another one".to_owned()))
        }
        Some(product) => {
            compiled(product.name, product.compiled, product.feature)?;
            Ok(product.name)
        }
    }
}

/// Whether a product is in this build.
pub(crate) fn compiled(name: &str, compiled: bool, feature: &'static str) -> Result<(), LabError> {
    if compiled { Ok(()) } else { Err(LabError::NotCompiled { what: name.to_owned(), feature }) }
}

fn known() -> Vec<&'static str> {
    let shared = PRODUCTS.iter().filter(|product| product.name != "memory");
    shared.flat_map(|product| product.schemes).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_names_its_feature() {
        let error = compiled("rabbitmq", false, "rabbitmq").unwrap_err();
        assert_eq!(
            error.to_string(),
            "rabbitmq is not in this build: build it again with `--features rabbitmq`"
        );
    }

    #[test]
    fn what_has_no_scheme_is_not_repeated() {
        let text = of_url("secret").unwrap_err().to_string();
        assert!(text.contains("amqp") && !text.contains("secret"), "{text}");
        assert!(of_url("memory:").unwrap_err().to_string().contains("ends with its process"));
    }
}
