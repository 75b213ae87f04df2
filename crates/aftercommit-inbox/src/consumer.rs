//! A consumer: store, handler and settings, ready to be started on any product.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{Broker, IdPolicy, RetryPolicy, Subscription};

use crate::error::ConsumerError;
use crate::handler::{BatchHandler, Handler};
use crate::running::Running;
use crate::settings::Settings;
use crate::store::InboxStore;
use crate::work::Work;

/// The consumer core, ready to be started: what it writes to, what it calls, how it behaves.
///
/// The order of things, for every product and every database: begin, claim, handle, prove, commit,
/// and only then the broker is told. A crash anywhere leaves a redelivery.
pub struct Consumer<S: InboxStore> {
    pub(crate) store: Arc<S>,
    pub(crate) work: Arc<Work<S>>,
    pub(crate) settings: Settings,
}

impl<S: InboxStore> std::fmt::Debug for Consumer<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer")
            .field("store", &self.store.product())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<S: InboxStore> Consumer<S> {
    /// A consumer that handles messages one by one (several share a transaction when they are there
    /// at the same time).
    #[must_use]
    pub fn new(store: S, handler: impl Handler<S>) -> Self {
        Self::with(store, Work::Single(Arc::new(handler)))
    }

    /// A consumer that handles many messages with one call.
    #[must_use]
    pub fn batch(store: S, handler: impl BatchHandler<S>) -> Self {
        Self::with(store, Work::Batch(Arc::new(handler)))
    }

    fn with(store: S, work: Work<S>) -> Self {
        Self { store: Arc::new(store), work: Arc::new(work), settings: Settings::default() }
    }

    /// How many transactions run side by side, each on a connection of its own. Default: 4, or what
    /// the pool allows if that is less (its size less two).
    #[must_use]
    pub const fn lanes(mut self, lanes: usize) -> Self {
        self.settings.lanes = Some(lanes);
        self
    }

    /// The most messages of one transaction. Default: 50. With 1, each has a transaction of its own.
    #[must_use]
    pub const fn max_batch(mut self, messages: usize) -> Self {
        self.settings.max_batch = messages;
        self
    }

    /// How old the oldest message of a batch that is not full may get before it goes. Default: 0, no
    /// message waits for another.
    #[must_use]
    pub const fn max_wait(mut self, age: Duration) -> Self {
        self.settings.max_wait = age;
        self
    }

    /// How long one handler call may take; `None` for as long as it likes. Default: 60 s. On expiry
    /// its connection is closed and the message has failed once. Keep it below the broker's own
    /// limit for unsettled messages.
    #[must_use]
    pub const fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// How long a shutdown waits for what is open. Default: 30 s.
    #[must_use]
    pub const fn shutdown_within(mut self, time: Duration) -> Self {
        self.settings.shutdown = time;
        self
    }

    /// How often the broker's topology is checked while running. Default: 60 s.
    #[must_use]
    pub const fn check_every(mut self, time: Duration) -> Self {
        self.settings.check_every = time;
        self
    }

    /// After how long without a step forward (a transaction begun, a handler called) a lane counts as
    /// stuck in [`Health`](crate::Health). Default: 15 min; must be longer than the deadline.
    #[must_use]
    pub const fn stuck_after(mut self, time: Duration) -> Self {
        self.settings.stuck_after = time;
        self
    }

    /// Where the message id comes from. Default: the product's native place, and a message without
    /// one is a dead letter.
    #[must_use]
    pub fn ids(mut self, policy: IdPolicy) -> Self {
        self.settings.ids = policy;
        self
    }

    /// How often and how late a failing message is tried again. Default: after 30 s, 5 min and
    /// 30 min; the fourth failure ends it.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// Checks database and broker and starts.
    ///
    /// # Errors
    /// [`ConsumerError`] naming the setting, table, queue or right that is missing or wrong. Nothing
    /// was consumed.
    ///
    /// # Cancel safety
    /// A dropped future has consumed nothing.
    pub async fn start(
        self,
        broker: Arc<dyn Broker>,
        subscription: Subscription,
    ) -> Result<Running, ConsumerError> {
        crate::start::start(self, broker, subscription).await
    }

    /// Starts and runs until `until` is ready, then shuts down gracefully: takes no more, finishes
    /// what is open, settles it, and gives back what was not started.
    ///
    /// # Errors
    /// [`ConsumerError`], from the start, from the run, or because the shutdown took too long.
    ///
    /// # Cancel safety
    /// Dropping the future begins a graceful shutdown in the background.
    pub async fn run(
        self,
        broker: Arc<dyn Broker>,
        subscription: Subscription,
        until: impl Future<Output = ()> + Send,
    ) -> Result<(), ConsumerError> {
        let running = self.start(broker, subscription).await?;
        running.until(until).await
    }
}
