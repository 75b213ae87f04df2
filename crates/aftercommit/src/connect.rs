//! From a URL to a connected product.

use std::sync::Arc;

use aftercommit_core::{Broker, BrokerError};

/// A product that a URL can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Product {
    /// The product's name in logs, metrics and docs.
    pub name: &'static str,
    /// The schemes of its URLs.
    pub schemes: &'static [&'static str],
    /// The feature that brings it.
    pub feature: &'static str,
    /// Whether this build has it.
    pub compiled: bool,
}

/// Every product that can be reached by URL, in this build or another.
pub const PRODUCTS: &[Product] = &[
    Product {
        name: "rabbitmq",
        schemes: &["amqp", "amqps"],
        feature: "rabbitmq",
        compiled: cfg!(feature = "rabbitmq"),
    },
    Product {
        name: "sqlqueue",
        schemes: &["sqlqueue"],
        feature: "sqlqueue",
        compiled: cfg!(feature = "sqlqueue"),
    },
    Product { name: "memory", schemes: &["memory"], feature: "memory", compiled: cfg!(feature = "memory") },
];

/// Why a URL did not lead to a product.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No product has this scheme.
    #[error("no product has URLs with the scheme {scheme:?}; known are {}", known())]
    UnknownScheme {
        /// The scheme found, without the rest of the URL, which may hold a password.
        scheme: String,
    },
    /// A product has this scheme, but this build was made without it.
    #[error("{product} is not in this build: add the feature {feature:?}")]
    NotCompiled {
        /// The product.
        product: &'static str,
        /// The feature that brings it.
        feature: &'static str,
    },
    /// The product could not be reached.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

/// Connects to the product that a URL names: `amqp://user:password@host:5672/vhost`,
/// `sqlqueue:path/to/queue.db` (made if it is missing), `memory:` (a new broker inside this process, with nothing in it).
///
/// # Errors
/// [`ConnectError`]; never with a password in it.
///
/// # Cancel safety
/// A dropped future leaves nothing behind.
pub async fn connect(url: &str) -> Result<Arc<dyn Broker>, ConnectError> {
    // What has no colon may be a password: it is not repeated.
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let product = PRODUCTS
        .iter()
        .find(|product| product.schemes.contains(&scheme))
        .ok_or_else(|| ConnectError::UnknownScheme { scheme: scheme.to_owned() })?;
    match product.name {
        #[cfg(feature = "rabbitmq")]
        "rabbitmq" => {
            let config = aftercommit_rabbitmq::Config::new(url).map_err(BrokerError::from)?;
            Ok(aftercommit_rabbitmq::connect(config).await?)
        }
        #[cfg(feature = "sqlqueue")]
        "sqlqueue" => {
            let config = aftercommit_sqlqueue::Config::new(url).map_err(BrokerError::from)?;
            Ok(aftercommit_sqlqueue::connect(config).await?)
        }
        #[cfg(feature = "memory")]
        "memory" => {
            let settings =
                aftercommit_memory::Settings { time: aftercommit_memory::Time::Real, ..Default::default() };
            Ok(Arc::new(aftercommit_memory::connect(settings).await?))
        }
        _ => Err(ConnectError::NotCompiled { product: product.name, feature: product.feature }),
    }
}

fn known() -> String {
    PRODUCTS.iter().flat_map(|product| product.schemes).copied().collect::<Vec<_>>().join(", ")
}
