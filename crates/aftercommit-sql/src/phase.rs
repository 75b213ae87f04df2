//! Where a session stands.

use aftercommit_inbox::{Fault, StoreError};

/// Where a session stands. Only a session at rest may go back to its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Outside a transaction, every call answered.
    Rest,
    /// A call has not returned: nobody knows what the connection is in the middle of.
    Calling,
    /// Inside a transaction.
    Open,
    /// Inside a transaction whose claims were just proved: COMMIT may follow.
    Proved,
    /// A call failed: rollback or discard.
    Failed,
    /// Discard only.
    Dead,
}

impl Phase {
    /// Refuses a call that is out of order, before anything is sent.
    pub(crate) fn expect(self, allowed: &[Self], call: &'static str) -> Result<(), StoreError> {
        if allowed.contains(&self) {
            return Ok(());
        }
        Err(match self {
            Self::Calling | Self::Dead => {
                StoreError::new(Fault::Unavailable, format!("{call} on a connection that is lost"))
            }
            other => StoreError::new(Fault::Aborted, format!("{call} out of order, in phase {other:?}")),
        })
    }

    /// Where a session stands after an error.
    pub(crate) const fn after(error: &StoreError) -> Self {
        match error.fault() {
            Fault::Unavailable | Fault::Unknown => Self::Dead,
            _ => Self::Failed,
        }
    }
}
