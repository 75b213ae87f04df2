use aftercommit::core::{Acker, Redelivery, SettleError, Settled};
use aftercommit_conformance::faults::{FaultyAcker, Script};
use async_trait::async_trait;

use super::journal::{Journal, Receipt};

/// Writes down why a delivery is confirmed and that it was. The script's faults lie between the two.
pub(super) struct LabAcker {
    pub(super) inner: Box<dyn Acker>,
    pub(super) receipt: Receipt,
    pub(super) journal: Journal,
    pub(super) script: Script,
}

#[async_trait]
impl Acker for LabAcker {
    #[expect(
        clippy::disallowed_methods,
        reason = "a decorator passes on what somebody else was allowed to do"
    )]
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        let Self { inner, receipt, journal, script } = *self;
        let _turn = journal.turn().await;
        // Only what this process committed counts as a place to die: a duplicate has nothing to lose.
        let inner: Box<dyn Acker> =
            if journal.settling(&receipt) { Box::new(FaultyAcker::new(inner, script)) } else { inner };
        let settled = inner.ack().await?;
        journal.done(&receipt);
        Ok(settled)
    }

    async fn give_back(self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError> {
        self.inner.give_back(when).await
    }

    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }
}
