use std::sync::Arc;

use aftercommit::core::{BrokerError, Finding, Source};
use aftercommit::{Broker, Destination, Publisher, Subscription};
use aftercommit_conformance::faults::Script;
use async_trait::async_trait;

use super::journal::Journal;
use super::source::LabSource;

/// A broker whose deliveries are written down, from receipt to confirm.
pub(super) struct LabBroker {
    pub(super) inner: Arc<dyn Broker>,
    pub(super) journal: Journal,
    pub(super) script: Script,
}

#[async_trait]
impl Broker for LabBroker {
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
        let inner = self.inner.source(subscription).await?;
        Ok(Box::new(LabSource::new(inner, self.journal.clone(), self.script.clone())))
    }

    async fn publisher(&self) -> Result<Box<dyn Publisher>, BrokerError> {
        self.inner.publisher().await
    }

    fn dead_letter(&self, subscription: &Subscription) -> Destination {
        self.inner.dead_letter(subscription)
    }

    async fn dead_letters(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        self.inner.dead_letters(subscription).await
    }
}
