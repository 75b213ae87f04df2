//! A product, connected: what hands out sources and publishers.

use async_trait::async_trait;

use crate::BoxError;
use crate::publisher::{Destination, Publisher};
use crate::source::Source;
use crate::subscription::{ConfigError, Subscription};

/// A connected product. Each product crate has a free `connect(config)` that answers one.
///
/// # What every implementation promises
/// - Nothing here settles or publishes a message by itself.
/// - [`check`](Self::check) changes nothing at the broker and may be called at any time.
/// - A subscription is opened only over a topology that exists; it is made by
///   [`declare`](Self::declare) or by the operator, never as a side effect.
#[async_trait]
pub trait Broker: Send + Sync {
    /// The product's name in logs, metrics and docs.
    fn product(&self) -> &'static str;

    /// Makes what the subscription needs and what is ours alone: source, routes, dead-letter
    /// destination. Existing parts are kept; a part that exists with other settings is an error.
    ///
    /// # Errors
    /// [`BrokerError`].
    ///
    /// # Cancel safety
    /// A dropped future may have made a part of it; calling again completes it.
    async fn declare(&self, subscription: &Subscription) -> Result<(), BrokerError>;

    /// Looks for settings that break the promise: missing source, route or dead-letter
    /// destination; limits that drop messages. An empty answer means that nothing was found.
    ///
    /// # Errors
    /// [`BrokerError`] when the check itself could not be made.
    ///
    /// # Cancel safety
    /// Cancel safe: changes nothing.
    async fn check(&self, subscription: &Subscription) -> Result<Vec<Finding>, BrokerError>;

    /// Opens the subscription.
    ///
    /// # Errors
    /// [`BrokerError`] when it cannot be opened now. Later losses are mended by the source itself.
    ///
    /// # Cancel safety
    /// A dropped future leaves no subscription behind.
    async fn source(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError>;

    /// Opens a publisher.
    ///
    /// # Errors
    /// [`BrokerError`] when it cannot be opened now. Later losses are mended by the publisher.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing behind.
    async fn publisher(&self) -> Result<Box<dyn Publisher>, BrokerError>;

    /// Where messages go that this subscription's consumer gives up on.
    fn dead_letter(&self, subscription: &Subscription) -> Destination;

    /// Opens this consumer's dead letters as a source: taking one is receiving and settling it,
    /// looking at one is receiving it and giving it back. Nothing leaves them by itself.
    ///
    /// # Errors
    /// As [`source`](Self::source).
    ///
    /// # Cancel safety
    /// As [`source`](Self::source).
    async fn dead_letters(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError>;
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Works now, may lose or delay messages under conditions that the finding names.
    Warn,
    /// Breaks the promise. Consumption is not started; found later, readiness turns false.
    Refuse,
}

/// One setting that threatens the promise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// Where: the queue, exchange, policy or setting.
    pub place: String,
    /// What it is and what it can do to messages.
    pub what: String,
    /// What to do about it.
    pub mend: String,
}

impl Finding {
    /// A finding that refuses the start.
    #[must_use]
    pub fn refuse(place: impl Into<String>, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Refuse, place: place.into(), what: what.into(), mend: mend.into() }
    }

    /// A finding that warns.
    #[must_use]
    pub fn warn(place: impl Into<String>, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { severity: Severity::Warn, place: place.into(), what: what.into(), mend: mend.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.what, self.mend)
    }
}

/// Why a broker could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// A setting that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The broker cannot be reached now.
    #[error("{product} at {address} cannot be reached: {reason}")]
    Unreachable {
        /// The product.
        product: &'static str,
        /// Host and port, without credentials.
        address: String,
        /// What happened.
        reason: String,
        /// The client's error.
        #[source]
        source: Option<BoxError>,
    },
    /// The broker does not let us: wrong credentials, no permission.
    #[error("{product} at {address} refused access: {reason}")]
    Denied {
        /// The product.
        product: &'static str,
        /// Host and port, without credentials.
        address: String,
        /// What was refused, without credentials.
        reason: String,
    },
    /// Something is missing or exists with other settings.
    #[error("{place}: {reason}")]
    Topology {
        /// The queue, exchange or topic.
        place: String,
        /// What is wrong with it.
        reason: String,
        /// The client's error.
        #[source]
        source: Option<BoxError>,
    },
    /// The client failed otherwise.
    #[error("{product} failed to {action}")]
    Backend {
        /// The product.
        product: &'static str,
        /// What was being done.
        action: &'static str,
        /// The client's error.
        #[source]
        source: BoxError,
    },
}

impl BrokerError {
    /// Whether the same call may succeed later without anybody changing a setting.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Backend { .. })
    }
}
