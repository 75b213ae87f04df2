//! Settling with faults.

use async_trait::async_trait;

use aftercommit_core::{Acker, Redelivery, SettleError, Settled};

use super::script::{Script, Seam};

/// An acker whose calls go through a [`Script`].
pub struct FaultyAcker {
    inner: Box<dyn Acker>,
    script: Script,
}

impl FaultyAcker {
    /// Wraps an acker.
    #[must_use]
    pub fn new(inner: Box<dyn Acker>, script: Script) -> Self {
        Self { inner, script }
    }
}

#[async_trait]
impl Acker for FaultyAcker {
    #[expect(
        clippy::disallowed_methods,
        reason = "a decorator passes on what somebody else was allowed to do"
    )]
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        let Self { inner, script } = *self;
        script.across(Seam::Ack, inner.ack(), |injected| SettleError::Backend(injected.into())).await
    }

    async fn give_back(self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError> {
        let Self { inner, script } = *self;
        let call = inner.give_back(when);
        script.across(Seam::GiveBack, call, |injected| SettleError::Backend(injected.into())).await
    }

    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }
}

impl std::fmt::Debug for FaultyAcker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyAcker").finish_non_exhaustive()
    }
}
