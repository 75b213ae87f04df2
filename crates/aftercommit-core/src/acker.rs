//! The right to settle one delivery.

use std::time::Duration;

use async_trait::async_trait;

use crate::BoxError;

/// The right, held once, to settle one delivery.
///
/// # What every implementation promises
/// - **By value.** Settling consumes the acker: nothing can be settled twice.
/// - **Only this one.** Settling touches this delivery and no neighbour, in whatever order
///   deliveries are settled. No "all up to here".
/// - **Nothing by accident.** Dropping an acker settles nothing; the broker keeps the message and
///   hands it out again once the connection, lease or assignment ends.
/// - **The truth.** The answer says how far it got ([`Settled`]), never more. A client library's
///   "false", "queued" or "no receipt" is not success.
/// - **Not ours any more.** After a reconnect, a revocation or an expired lease, both calls answer
///   [`SettleError::Lost`] and send nothing, because the tag, offset or handle now means something
///   else or nothing. `Lost` is no failure of the message: it will be delivered again and the inbox
///   will know it.
///
/// # Who may call `ack`
/// Code that holds evidence of a commit, of a duplicate or of a confirmed parking. In this
/// workspace that is one place, `aftercommit_inbox::evidence`; a lint refuses the others.
#[async_trait]
pub trait Acker: Send + Sync {
    /// Tells the broker that the message is done with.
    ///
    /// # Errors
    /// [`SettleError::Lost`] when the delivery is no longer ours; [`SettleError::Backend`] when the
    /// client failed, in which case the broker may or may not have taken it.
    ///
    /// # Cancel safety
    /// A dropped future loses the answer, not the message: the broker may or may not have been
    /// told, and a message it was not told about comes again.
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError>;

    /// Gives the message back to be handed out again, without a mark against it.
    ///
    /// Where asking the broker to requeue would spend a delivery limit, or where there is no such
    /// request, the message stays unsettled in the client and is handed out again from there when
    /// it is due; if the connection ends before that, the broker redelivers it.
    ///
    /// # Errors
    /// [`SettleError::Lost`] when the delivery is no longer ours (the broker redelivers it by
    /// itself); [`SettleError::Unsupported`] when the delay is longer than
    /// [`Capabilities::delay`](crate::Capabilities::delay) allows: it is never shortened silently.
    /// Callers compare first, since the acker is spent: such a message stays unsettled until its
    /// connection ends. [`SettleError::Backend`] when the client failed.
    ///
    /// # Cancel safety
    /// As for [`ack`](Self::ack): at worst the message comes again at another time.
    async fn give_back(self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError>;

    /// Whether it is already known that this delivery is no longer ours. `false` promises nothing;
    /// `true` lets the core skip work whose result the broker would not hear.
    fn is_lost(&self) -> bool {
        false
    }
}

/// When a message that is given back shall be handed out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redelivery {
    /// As soon as possible.
    Now,
    /// Not before this much time has passed.
    After(Duration),
}

/// How far a settlement got. Ordered: later is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Settled {
    /// The client knows and will tell the broker; a crash now makes a redelivery.
    Staged,
    /// Written to the socket; the protocol has no receipt.
    Sent,
    /// The broker answered that it knows.
    Confirmed,
}

/// Why a settlement did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The channel, partition or lease that this delivery came over is no longer ours. Nothing was
    /// sent. The broker hands the message out again.
    #[error("the delivery is no longer ours: {reason}")]
    Lost {
        /// What ended it.
        reason: &'static str,
    },
    /// The product cannot do what was asked.
    #[error("{product} cannot {request}")]
    Unsupported {
        /// The product.
        product: &'static str,
        /// What was asked.
        request: String,
    },
    /// The client library failed; the broker may or may not have been told.
    #[error("could not settle the delivery")]
    Backend(#[source] BoxError),
}

impl SettleError {
    /// Shorthand for [`SettleError::Lost`].
    #[must_use]
    pub const fn lost(reason: &'static str) -> Self {
        Self::Lost { reason }
    }

    /// Whether settling the same delivery again may succeed. Never: the acker is spent. The message
    /// comes again by itself, at the latest when its connection ends.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        false
    }
}
