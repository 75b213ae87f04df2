//! Where deliveries come from.

use async_trait::async_trait;

use crate::BoxError;
use crate::capabilities::Capabilities;
use crate::delivery::Batch;
use crate::health::Signal;

/// One subscription's stream of deliveries.
///
/// # What every implementation promises
/// - **At least once.** A message that was not settled is handed out again: after it was given
///   back, after a reconnect, or to the next process.
/// - **Bounded.** Never more than [`Capabilities::prefetch`] deliveries are out unsettled, held
///   ones included. When the bound is reached, [`recv`](Self::recv) waits; the client buffers no
///   more than the bound.
/// - **Goes on by itself.** A lost connection, a closed channel, a cancelled consumer, a queue that
///   is deleted and made again: the source subscribes anew with backoff and `recv` keeps waiting.
///   Deliveries from before answer [`Lost`](crate::SettleError::Lost).
/// - **Says how it is.** [`health`](Self::health) is down whenever the source is not subscribed, and
///   after it was closed.
/// - **Body and headers as sent.** Whatever bytes a producer could publish, `recv` hands out; what
///   cannot be mapped to the envelope stays in the headers and breaks nothing.
#[async_trait]
pub trait Source: Send {
    /// What this source promises.
    fn capabilities(&self) -> Capabilities;

    /// Whether the source is subscribed at this moment.
    fn health(&self) -> Signal;

    /// Waits for deliveries: at least one, at most `max` (which must not be 0; it counts as 1).
    /// Does not wait to fill a batch.
    ///
    /// # Errors
    /// [`SourceError::Closed`] when this source will never deliver again;
    /// [`SourceError::Backend`] when it gave up for a reason that waiting cannot mend.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future has taken no delivery.
    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError>;

    /// Ends the subscription. What was staged is flushed first; what is unsettled goes back to the
    /// broker. Ackers that are still out answer `Lost` afterwards.
    ///
    /// # Errors
    /// [`SourceError::Backend`] when what was staged could not be flushed: those messages come
    /// again.
    ///
    /// # Cancel safety
    /// A dropped future ends the subscription without the flush.
    async fn close(self: Box<Self>) -> Result<(), SourceError>;
}

/// Why a source ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// It was closed from our side.
    #[error("the source is closed")]
    Closed,
    /// The client failed in a way that the source cannot mend by reconnecting.
    #[error("the source failed: {what}")]
    Backend {
        /// What failed.
        what: String,
        /// The client's error.
        #[source]
        source: Option<BoxError>,
    },
}
