//! A broker whose sources and publishers have faults.

use std::sync::Arc;

use async_trait::async_trait;

use aftercommit_core::{Broker, BrokerError, Destination, Finding, Publisher, Source, Subscription};

use super::publisher::FaultyPublisher;
use super::script::Script;
use super::source::FaultySource;

/// A broker that hands out sources and publishers whose calls go through one [`Script`]. Opening,
/// declaring and checking have no faults.
#[derive(Clone)]
pub struct FaultyBroker {
    inner: Arc<dyn Broker>,
    script: Script,
}

impl FaultyBroker {
    /// Wraps a broker.
    #[must_use]
    pub fn new(inner: Arc<dyn Broker>, script: Script) -> Self {
        Self { inner, script }
    }

    fn wrap(&self, source: Box<dyn Source>) -> Box<dyn Source> {
        Box::new(FaultySource::new(source, self.script.clone()))
    }
}

#[async_trait]
impl Broker for FaultyBroker {
    fn product(&self) -> &'static str {
        self.inner.product()
    }

    async fn declare(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        self.inner.declare(subscription).await
    }

    async fn check(&self, subscription: &Subscription) -> Result<Vec<Finding>, BrokerError> {
        self.inner.check(subscription).await
    }

    async fn source(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        Ok(self.wrap(self.inner.source(subscription).await?))
    }

    async fn publisher(&self) -> Result<Box<dyn Publisher>, BrokerError> {
        let inner = self.inner.publisher().await?;
        Ok(Box::new(FaultyPublisher::new(inner, self.script.clone())))
    }

    fn dead_letter(&self, subscription: &Subscription) -> Destination {
        self.inner.dead_letter(subscription)
    }

    async fn dead_letters(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        Ok(self.wrap(self.inner.dead_letters(subscription).await?))
    }
}

impl std::fmt::Debug for FaultyBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyBroker").field("product", &self.product()).finish_non_exhaustive()
    }
}
