//! Where one trial plays.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use aftercommit_core::{BoxError, Broker, Destination, Headers, Message, Subscription};

/// What is in a queue, seen from outside the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Waiting to be handed out.
    pub ready: u64,
    /// Handed out and not settled.
    pub unsettled: u64,
}

impl Depth {
    /// All that is not settled.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.ready + self.unsettled
    }
}

/// A part of a subscription's topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The queue, topic or table that is read.
    Source,
    /// The destination of the consumer's dead letters.
    DeadLetter,
    /// The routes into the source.
    Route,
}

/// The surroundings of one trial: the product under test, and the hands to do to it what happens
/// in the field. Methods for an [`Ability`](super::Ability) that the fixture declares absent are
/// never called and need not be written.
#[async_trait]
pub trait Stage: Send + Sync {
    /// Opens a new connection, over a way that [`cut`](Self::cut), [`stall`](Self::stall) and
    /// [`take_down`](Self::take_down) act on.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future leaves no connection behind.
    async fn connect(&self) -> Result<Arc<dyn Broker>, BoxError>;

    /// A subscription of `consumer` to what is published to [`destination`](Self::destination) of
    /// the same topic. Two consumers of one topic have two sources. Not declared yet.
    ///
    /// # Errors
    /// When the names break a rule.
    fn subscription(&self, consumer: &str, topic: &str) -> Result<Subscription, BoxError>;

    /// Where to publish for a topic.
    fn destination(&self, topic: &str) -> Destination;

    /// What is in the subscription's source, from outside the client. Current, not a statistic
    /// of some seconds ago.
    ///
    /// # Errors
    /// When the server does not say, or there is no such source.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn depth(&self, subscription: &Subscription) -> Result<Depth, BoxError>;

    /// Removes what the trial made. Called at the end, whatever the result.
    ///
    /// # Errors
    /// When that fails, and the trial with it.
    ///
    /// # Cancel safety
    /// A dropped future leaves things at the server.
    async fn strike(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// The stage's clock. Default: real time.
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    /// Lets time pass on the stage's clock. Default: real time.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// How long a trial listens before it believes that nothing comes.
    fn quiet(&self) -> Duration {
        Duration::from_millis(500)
    }

    /// How long a trial waits for something that must come, a reconnect included.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }

    /// A delay for [`Redelivery::After`](aftercommit_core::Redelivery): long enough to measure.
    fn delay(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// How long the product's publishers wait for an answer.
    fn publish_deadline(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// A message as the product hands it out, by the mapping that the product documents for what
    /// its wire format lacks. Default: as it was sent.
    fn expected(&self, sent: &Message) -> Message {
        sent.clone()
    }

    /// Native properties that the product restores.
    fn native(&self) -> Headers {
        Headers::new()
    }

    /// A body size in bytes that the product refuses.
    fn too_large(&self) -> usize {
        usize::MAX
    }

    /// A destination that does not exist.
    fn missing(&self) -> Destination {
        Destination::new("aftercommit-missing")
    }

    /// Makes a destination that exists and leads nowhere.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have made it.
    async fn unroutable(&self) -> Result<Destination, BoxError> {
        Err(cannot("make a destination that leads nowhere"))
    }

    /// Makes a destination that refuses every message because it is full.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have made it.
    async fn full(&self) -> Result<Destination, BoxError> {
        Err(cannot("make a full destination"))
    }

    /// Cuts every connection of this stage, without a goodbye. New ones are let through at once.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have cut.
    async fn cut(&self) -> Result<(), BoxError> {
        Err(cannot("cut connections"))
    }

    /// Cuts every connection of this stage and lets none through until
    /// [`bring_up`](Self::bring_up).
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn take_down(&self) -> Result<(), BoxError> {
        Err(cannot("take the broker down"))
    }

    /// Ends [`take_down`](Self::take_down).
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn bring_up(&self) -> Result<(), BoxError> {
        Err(cannot("bring the broker up"))
    }

    /// Restarts the server itself and returns when it serves again.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may leave the server down.
    async fn restart(&self) -> Result<(), BoxError> {
        Err(cannot("restart the server"))
    }

    /// From now on publishers get no answer, though connections stay open, until
    /// [`go_on`](Self::go_on).
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn stall(&self) -> Result<(), BoxError> {
        Err(cannot("stall"))
    }

    /// Ends [`stall`](Self::stall).
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn go_on(&self) -> Result<(), BoxError> {
        Err(cannot("go on"))
    }

    /// Removes a part of a declared subscription, as an operator does by mistake.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have removed it.
    async fn remove(&self, part: Part, subscription: &Subscription) -> Result<(), BoxError> {
        let _ = subscription;
        Err(cannot(&format!("remove the {part:?}")))
    }

    /// Makes the subscription's source with settings that the product's own declaration does not
    /// use.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have made it.
    async fn occupy(&self, subscription: &Subscription) -> Result<(), BoxError> {
        let _ = subscription;
        Err(cannot("make a source with other settings"))
    }

    /// Gives a declared source a limit that drops messages.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn limit(&self, subscription: &Subscription) -> Result<(), BoxError> {
        let _ = subscription;
        Err(cannot("limit a source"))
    }
}

fn cannot(what: &str) -> BoxError {
    format!("this stage cannot {what}: declare the ability absent or write the method").into()
}
