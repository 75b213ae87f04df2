//! The way out: publishing with a positive answer.

use async_trait::async_trait;

use crate::BoxError;
use crate::message::Message;

/// Publishes messages and waits for the broker's answer.
///
/// # What every implementation promises
/// - **Ok is a positive answer.** The broker has taken the message durably and at least one
///   destination of its own was found for it. A written frame, a queued record, an expired wait are
///   not Ok. It proves *some* destination, not the right one: topology is checked apart.
/// - **The right answer.** With many publishes in flight each gets its own answer. Returned
///   messages are matched by a nonce header of ours, since ids may repeat or be absent.
/// - **Bounded.** A publish ends by the publisher's deadline, then with
///   [`PublishError::Unknown`].
/// - **No hidden retry.** One call leaves at most one copy, as far as the product can tell: a client
///   that resends by itself does so only where the broker recognises the copy.
/// - **One bad publish harms no other.** Where the broker closes a channel over one message, the
///   others in flight answer `Unknown`, and the publisher serves the next call.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Sends one message and waits for the answer. May be called concurrently.
    ///
    /// # Errors
    /// See [`PublishError`]. Only `Unknown` leaves it open whether the message exists.
    ///
    /// # Cancel safety
    /// A dropped future loses the answer: the message may or may not have been sent.
    async fn publish(&self, message: Outgoing) -> Result<Receipt, PublishError>;
}

/// Where a message goes, in the product's own two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Exchange, topic or queue table. On RabbitMQ the empty name is the default exchange, which
    /// routes to the queue that the routing key names.
    pub name: String,
    /// The routing key, where the product has one.
    pub routing_key: String,
}

impl Destination {
    /// A destination without a routing key.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), routing_key: String::new() }
    }

    /// The same with a routing key.
    #[must_use]
    pub fn with_routing_key(mut self, routing_key: impl Into<String>) -> Self {
        self.routing_key = routing_key.into();
        self
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.routing_key.is_empty() {
            write!(f, "{}", self.name)
        } else {
            write!(f, "{}/{}", self.name, self.routing_key)
        }
    }
}

/// A message on its way out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// Where to.
    pub destination: Destination,
    /// What. [`Message::origin`] and [`Message::commands`] are not sent.
    pub message: Message,
}

impl Outgoing {
    /// A message for a destination.
    #[must_use]
    pub const fn new(destination: Destination, message: Message) -> Self {
        Self { destination, message }
    }
}

/// The broker's positive answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Where it went.
    pub destination: Destination,
    /// What identifies it there, where the product says so (`partition/offset`, an entry id).
    pub position: Option<String>,
}

impl Receipt {
    /// A receipt for a destination.
    #[must_use]
    pub const fn new(destination: Destination, position: Option<String>) -> Self {
        Self { destination, position }
    }
}

/// Why there is no positive answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The broker said no: negative confirm, missing exchange or topic, no permission, bad key.
    #[error("the broker refused the message for {destination}: {reason}")]
    Refused {
        /// Where it was to go.
        destination: Destination,
        /// The broker's reason, or what a check of ours found before sending.
        reason: String,
        /// Whether the same message may be taken later without anybody changing it: a full queue,
        /// a missing exchange. `false`: never in this form.
        later: bool,
    },
    /// The broker took it and found no queue for it. It is kept nowhere.
    #[error("no queue is bound for {destination}")]
    Unroutable {
        /// Where it was to go.
        destination: Destination,
    },
    /// Larger than the broker or the destination allows. It was not kept and never will be.
    #[error("the message for {destination} is too large: {reason}")]
    TooLarge {
        /// Where it was to go.
        destination: Destination,
        /// Size and limit.
        reason: String,
    },
    /// The connection ended or the deadline passed before the answer: it may exist, or not. Send
    /// it again under the same id.
    #[error("no answer from the broker for {destination}: {reason}")]
    Unknown {
        /// Where it was to go.
        destination: Destination,
        /// What ended the wait.
        reason: String,
        /// The client's error, if there was one.
        #[source]
        source: Option<BoxError>,
    },
}

impl PublishError {
    /// Whether the same message may get a positive answer later: everything but
    /// [`TooLarge`](Self::TooLarge) and a final refusal.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { later, .. } => *later,
            Self::TooLarge { .. } => false,
            Self::Unroutable { .. } | Self::Unknown { .. } => true,
        }
    }
}
