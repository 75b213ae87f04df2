//! Consumers as they are often written by hand. Each breaks the promise in its own way, and the experiment has to see
//! it: one that passes with these proves nothing.

use std::sync::Arc;
use std::time::Duration;

use aftercommit::core::{Acker, Delivery, Source};

use tokio::time::timeout;

use super::assignment::Method;
use super::consumer::die;
use super::journal::{Journal, Receipt};
use crate::LabError;
use crate::database::Ledger;
use crate::order::{Order, id_of};
use crate::plan::Crash;

/// How long the next message may take; at the end of a queue there is none.
const NEXT: Duration = Duration::from_secs(2);

pub(super) struct Naive {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) journal: Journal,
    pub(super) method: Method,
    pub(super) crash: Option<Crash>,
    pub(super) spared: Vec<Order>,
}

impl Naive {
    /// One message after the other.
    pub(super) async fn run(
        mut self,
        mut source: Box<dyn Source>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), LabError> {
        let mut stop = std::pin::pin!(stop);
        loop {
            let received = tokio::select! {
                biased;
                () = &mut stop => break,
                received = source.recv(1) => received,
            };
            for delivery in received.map_err(LabError::doing("receiving"))? {
                self.handle(&mut *source, delivery).await?;
            }
        }
        source.close().await.map_err(LabError::doing("closing the source"))
    }

    async fn handle(&mut self, source: &mut dyn Source, delivery: Delivery) -> Result<(), LabError> {
        let receipt = self.journal.receipt(&delivery.message, delivery.redelivered).await;
        self.journal.received(&receipt);
        self.journal.handling(&receipt.message);
        let acker = delivery.into_acker();
        match self.method {
            Method::ConfirmFirst => self.confirm_first(source, &receipt, acker).await?,
            Method::TwoTransactions => self.two_transactions(&receipt, acker).await?,
            Method::NoInbox | Method::Inbox => self.no_inbox(&receipt, acker).await?,
        }
        self.journal.done(&receipt);
        Ok(())
    }

    async fn confirm_first(
        &mut self,
        source: &mut dyn Source,
        receipt: &Receipt,
        acker: Box<dyn Acker>,
    ) -> Result<(), LabError> {
        confirm(acker).await?;
        if self.dies_here(receipt) {
            // The broker sends the next message for the confirm. With it in hand each run leaves the same behind.
            let _ = timeout(NEXT, source.recv(1)).await;
            die(&self.journal);
        }
        if self.ledger.write_both(&receipt.message).await? {
            self.journal.handled(&receipt.message);
        }
        self.journal.settling(receipt);
        Ok(())
    }

    async fn two_transactions(&mut self, receipt: &Receipt, acker: Box<dyn Acker>) -> Result<(), LabError> {
        let id = id_of(&receipt.message);
        if self.ledger.is_recorded(&id).await? {
            self.journal.settling(receipt);
            return confirm(acker).await;
        }
        self.effect(receipt).await?;
        self.ledger.write_record(&id).await?;
        confirm(acker).await
    }

    async fn no_inbox(&mut self, receipt: &Receipt, acker: Box<dyn Acker>) -> Result<(), LabError> {
        self.effect(receipt).await?;
        confirm(acker).await
    }

    async fn effect(&mut self, receipt: &Receipt) -> Result<(), LabError> {
        self.ledger.write_effect(&receipt.message).await?;
        self.journal.handled(&receipt.message);
        self.journal.settling(receipt);
        if self.dies_here(receipt) {
            die(&self.journal);
        }
        Ok(())
    }

    /// Whether this is the point where the process dies: between the two things that belong together.
    fn dies_here(&mut self, receipt: &Receipt) -> bool {
        let id = id_of(&receipt.message);
        match &mut self.crash {
            Some(Crash { nth: 0, .. }) => self.spared.iter().all(|order| order.message_id() != id),
            Some(crash) => {
                crash.nth -= 1;
                false
            }
            None => false,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "to confirm without evidence is what these are here for")]
async fn confirm(acker: Box<dyn Acker>) -> Result<(), LabError> {
    acker.ack().await.map(drop).map_err(LabError::doing("confirming"))
}
