use std::sync::Arc;

use aftercommit_core::{Broker, BrokerError, Destination, Finding, Publisher, Source, Subscription};
use async_trait::async_trait;

use crate::config::Config;
use crate::error::PRODUCT;
use crate::link::Link;
use crate::publisher::RabbitPublisher;
use crate::source::RabbitSource;
use crate::topology;

/// RabbitMQ, reached with one configuration.
#[derive(Clone, Debug)]
pub struct RabbitMq {
    config: Arc<Config>,
}

/// Connects to RabbitMQ once, to see that host, credentials and virtual host are right.
///
/// # Errors
/// [`BrokerError::Denied`] for wrong credentials or a virtual host that is missing or closed to the
/// user, [`BrokerError::Unreachable`] when nothing answers within the connect timeout,
/// [`BrokerError::Config`] for TLS files that cannot be read.
///
/// # Cancel safety
/// A dropped future leaves nothing behind.
pub async fn connect(config: Config) -> Result<Arc<dyn Broker>, BrokerError> {
    Ok(Arc::new(RabbitMq::connect(config).await?))
}

impl RabbitMq {
    /// As [`connect`], with the concrete type.
    ///
    /// # Errors
    /// As [`connect`].
    ///
    /// # Cancel safety
    /// As [`connect`].
    pub async fn connect(config: Config) -> Result<Self, BrokerError> {
        Link::open(&config, "first connection").await?.close(None).await;
        Ok(Self { config: Arc::new(config) })
    }
}

#[async_trait]
impl Broker for RabbitMq {
    fn product(&self) -> &'static str {
        PRODUCT
    }

    async fn declare(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        topology::declare(&self.config, subscription).await
    }

    async fn check(&self, subscription: &Subscription) -> Result<Vec<Finding>, BrokerError> {
        topology::check(&self.config, subscription).await
    }

    async fn source(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        let config = Arc::clone(&self.config);
        Ok(Box::new(RabbitSource::open(config, &subscription.source, subscription.prefetch).await?))
    }

    async fn publisher(&self) -> Result<Box<dyn Publisher>, BrokerError> {
        Ok(Box::new(RabbitPublisher::open(Arc::clone(&self.config)).await?))
    }

    fn dead_letter(&self, subscription: &Subscription) -> Destination {
        topology::dead_letter(subscription)
    }

    async fn dead_letters(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        let queue = topology::dead_letter_queue(subscription);
        Ok(Box::new(RabbitSource::open(Arc::clone(&self.config), &queue, subscription.prefetch).await?))
    }
}
