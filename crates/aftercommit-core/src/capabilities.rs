//! What a product can promise. Stated, so that the core decides by it and never by a product's name.

use std::time::Duration;

use crate::acker::Settled;

/// What a product promises to a consumer. The suites check each field against behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The product's name in logs, metrics and docs.
    pub product: &'static str,
    /// The strongest answer that [`Acker::ack`](crate::Acker::ack) can give.
    pub settled: Settled,
    /// What order the source keeps.
    pub order: Order,
    /// Whether [`Redelivered`](crate::Redelivered) is ever anything but `Unknown`.
    pub says_redelivered: bool,
    /// How a message that is given back for later waits.
    pub delay: Delay,
    /// How many deliveries can be unsettled at once: the subscription's prefetch, or the product's
    /// own default where that says nothing.
    pub prefetch: usize,
}

impl Capabilities {
    /// The weakest promises a product can make; a product states what it has beyond them.
    #[must_use]
    pub const fn new(product: &'static str, prefetch: usize) -> Self {
        Self {
            product,
            settled: Settled::Staged,
            order: Order::None,
            says_redelivered: false,
            delay: Delay::Held { longest: Duration::ZERO },
            prefetch,
        }
    }
}

/// The order in which a source hands messages out while nothing is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// No order is promised.
    None,
    /// Messages of one key come in the order they were published.
    PerKey,
    /// All messages of the source come in the order they were published, as long as one process
    /// consumes it.
    PerSource,
}

/// How a message that was given back for later waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delay {
    /// Unsettled in the client: it takes a place of the prefetch and is redelivered early when the
    /// connection ends.
    Held {
        /// The longest delay that the broker tolerates for an unsettled delivery.
        longest: Duration,
    },
    /// The broker keeps it until it is due.
    Native {
        /// The longest delay.
        longest: Duration,
    },
}

impl Delay {
    /// The longest delay a message can be given back for.
    #[must_use]
    pub const fn longest(self) -> Duration {
        match self {
            Self::Held { longest } | Self::Native { longest } => longest,
        }
    }
}
