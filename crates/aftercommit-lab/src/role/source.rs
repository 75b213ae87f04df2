use aftercommit::core::{Batch, Capabilities, Delivery, Signal, Source, SourceError};
use aftercommit_conformance::faults::Script;
use async_trait::async_trait;

use super::acker::LabAcker;
use super::journal::{Journal, Receipt};

/// Writes down what is received.
pub(super) struct LabSource {
    inner: Box<dyn Source>,
    journal: Journal,
    script: Script,
    /// Received, but not written down yet: kept for the next call, so that a dropped future loses nothing.
    kept: Option<Vec<Delivery>>,
}

impl LabSource {
    pub(super) fn new(inner: Box<dyn Source>, journal: Journal, script: Script) -> Self {
        Self { inner, journal, script, kept: None }
    }

    fn hand_out(&self, delivery: Delivery, receipt: Receipt) -> Delivery {
        self.journal.received(&receipt);
        let (journal, script) = (self.journal.clone(), self.script.clone());
        delivery.map_acker(|inner| Box::new(LabAcker { inner, receipt, journal, script }))
    }
}

#[async_trait]
impl Source for LabSource {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> Signal {
        self.inner.health()
    }

    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError> {
        if self.kept.is_none() {
            self.kept = Some(self.inner.recv(max).await?.into_vec());
        }
        let mut receipts = Vec::new();
        for delivery in self.kept.as_deref().unwrap_or_default() {
            receipts.push(self.journal.receipt(&delivery.message, delivery.redelivered).await);
        }
        let journal = self.journal.clone();
        let _turn = journal.turn().await;
        let deliveries = self.kept.take().unwrap_or_default();
        let both = deliveries.into_iter().zip(receipts);
        let handed_out = both.map(|(delivery, receipt)| self.hand_out(delivery, receipt));
        Batch::new(handed_out.collect()).ok_or(SourceError::Closed)
    }

    async fn close(self: Box<Self>) -> Result<(), SourceError> {
        self.inner.close().await
    }
}
