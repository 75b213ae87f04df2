//! What happened, in order, so that a test can check publish → confirm → settle.

use bytes::Bytes;

use aftercommit_core::{Destination, Redelivery};

/// Names one message inside the broker: ascending in the order of publishing. Copies in several
/// queues have the same position.
pub type Position = u64;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A message was kept in these queues.
    Published {
        /// Where it was sent.
        destination: Destination,
        /// The message's native id.
        id: Option<Bytes>,
        /// Which message.
        position: Position,
        /// The queues that keep it.
        queues: Vec<String>,
    },
    /// Its publisher was told so.
    Confirmed {
        /// Which message.
        position: Position,
    },
    /// A message was handed out.
    Delivered {
        /// From which queue.
        queue: String,
        /// The message's native id.
        id: Option<Bytes>,
        /// Which message.
        position: Position,
        /// Whether it had been handed out before.
        again: bool,
    },
    /// A message was acknowledged and removed.
    Settled {
        /// From which queue.
        queue: String,
        /// The message's native id.
        id: Option<Bytes>,
        /// Which message.
        position: Position,
    },
    /// A message was given back.
    GivenBack {
        /// To which queue.
        queue: String,
        /// The message's native id.
        id: Option<Bytes>,
        /// Which message.
        position: Position,
        /// For when.
        when: Redelivery,
    },
    /// An acker was used whose delivery was no longer its own.
    Lost {
        /// The queue it came from.
        queue: String,
    },
    /// Connections were cut.
    Cut,
    /// A subscription was closed.
    Closed {
        /// Of which queue.
        queue: String,
    },
}
