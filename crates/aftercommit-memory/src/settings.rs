//! What a memory broker is made with.

use std::time::Duration;

use aftercommit_core::Delay;

/// What moves the broker's [`Clock`](crate::Clock).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// [`Clock::advance`](crate::Clock::advance) alone.
    Virtual,
    /// The world's time too, as tokio has it.
    Real,
}

/// Settings of a [`MemoryBroker`](crate::MemoryBroker).
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How messages wait that are given back for later: held by the client as with RabbitMQ and
    /// Kafka (the default, up to 30 minutes), or natively in the queue.
    pub delay: Delay,
    /// The most bytes a body may have. Default: 4 MiB.
    pub max_size: usize,
    /// Whose time it lives in. Default: virtual.
    pub time: Time,
    /// How much of its time a publish waits for its answer. Default: 30 seconds.
    pub publish_deadline: Duration,
    /// The prefetch of a subscription that does not say. Default: 100.
    pub prefetch: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delay: Delay::Held { longest: Duration::from_secs(30 * 60) },
            max_size: 4 * 1024 * 1024,
            time: Time::Virtual,
            publish_deadline: Duration::from_secs(30),
            prefetch: 100,
        }
    }
}
