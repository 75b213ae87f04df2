//! The product with the meter around it: a decorator of the public contracts, which costs the
//! product a box per message and the yardstick nothing.

use std::sync::Arc;

use aftercommit_core::{
    Acker, Batch, Broker, BrokerError, Capabilities, Destination, Finding, Publisher, Redelivery,
    SettleError, Settled, Signal, Source, SourceError, Subscription,
};
use async_trait::async_trait;

use crate::arena::sent_at;
use crate::meter::Meter;

pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Broker>,
    pub(crate) meter: Arc<Meter>,
}

struct WatchedSource {
    inner: Box<dyn Source>,
    meter: Arc<Meter>,
}

struct WatchedAcker {
    inner: Box<dyn Acker>,
    meter: Arc<Meter>,
    sent_at: u64,
}

#[async_trait]
impl Broker for Watched {
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
        Ok(Box::new(WatchedSource { inner, meter: Arc::clone(&self.meter) }))
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

#[async_trait]
impl Source for WatchedSource {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> Signal {
        self.inner.health()
    }

    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError> {
        let batch = self.inner.recv(max).await?;
        self.meter.received();
        let watched = batch.into_iter().map(|delivery| {
            let meter = Arc::clone(&self.meter);
            let sent_at = sent_at(delivery.message.body.as_deref().unwrap_or_default());
            delivery.map_acker(|inner| Box::new(WatchedAcker { inner, meter, sent_at }))
        });
        Batch::new(watched.collect()).ok_or(SourceError::Closed)
    }

    async fn close(self: Box<Self>) -> Result<(), SourceError> {
        self.inner.close().await
    }
}

#[async_trait]
impl Acker for WatchedAcker {
    #[expect(clippy::disallowed_methods, reason = "a decorator passes on what the core was allowed to do")]
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        let settled = self.inner.ack().await?;
        self.meter.confirmed(self.sent_at);
        Ok(settled)
    }

    async fn give_back(self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError> {
        self.inner.give_back(when).await
    }

    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }
}
