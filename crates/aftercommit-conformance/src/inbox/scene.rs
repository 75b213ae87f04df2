//! What nearly every trial does: start consumers, publish to them, wait, count.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use aftercommit_core::{
    BoxError, Broker, Destination, Message, Outgoing, PublishError, Publisher, Subscription,
};
use aftercommit_inbox::{Consumer, Handler, InboxStore};

use super::books::{Effect, Ledger};
pub(crate) use super::cast::{Cast, DELAYS, Player, quick};
use super::probe::{Call, Many, Probe, Single, Step, name_of};
use super::tally::Tally;
use crate::broker::{Depth, Stage};
use crate::faults::{FaultyBroker, FaultyStore, Script};

/// Fails the trial unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}
pub(crate) use ensure;

pub(crate) type Done = Result<(), BoxError>;

/// The name of the consumer that most trials have.
pub(crate) const CONSUMER: &str = "billing";
pub(crate) const TOPIC: &str = "orders";

/// One trial's surroundings: a product, a database, a declared subscription and a publisher.
pub(crate) struct Scene<S: InboxStore> {
    pub(crate) stage: Arc<dyn Stage>,
    pub(crate) ledger: Arc<dyn Ledger<S>>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) subscription: Subscription,
    pub(crate) to: Destination,
    ticking: JoinHandle<()>,
}

impl<S: InboxStore> Scene<S> {
    pub(crate) async fn open(stage: Arc<dyn Stage>, ledger: Arc<dyn Ledger<S>>) -> Result<Self, BoxError> {
        let broker = stage.connect().await?;
        let subscription = stage.subscription(CONSUMER, TOPIC)?;
        broker.declare(&subscription).await?;
        let publisher = Arc::from(broker.publisher().await?);
        let to = stage.destination(TOPIC);
        let ticking = tokio::spawn(tick(Arc::clone(&stage)));
        Ok(Self { stage, ledger, broker, publisher, subscription, to, ticking })
    }

    /// A handler for this scene's own consumer.
    pub(crate) fn probe(&self, plan: impl Fn(&Call) -> Step + Send + Sync + 'static) -> Arc<Probe<S>> {
        self.probe_of(CONSUMER, plan)
    }

    pub(crate) fn probe_of(
        &self,
        consumer: &str,
        plan: impl Fn(&Call) -> Step + Send + Sync + 'static,
    ) -> Arc<Probe<S>> {
        Probe::new(consumer, Arc::clone(&self.stage), Arc::clone(&self.ledger), plan)
    }

    /// A consumer over a store of its own, with short delays.
    pub(crate) async fn consumer(&self, probe: &Arc<Probe<S>>) -> Result<Cast<S>, BoxError> {
        self.consumer_of(Single(Arc::clone(probe)), &Script::record()).await
    }

    /// The same with another handler, and with faults of the database.
    pub(crate) async fn consumer_of(
        &self,
        handler: impl Handler<FaultyStore<S>>,
        script: &Script,
    ) -> Result<Cast<S>, BoxError> {
        let store = FaultyStore::new(self.ledger.store().await?, script.clone());
        let outage = store.outage();
        Ok(Cast { consumer: quick(Consumer::new(store, handler))?, outage })
    }

    /// The same with a batch handler.
    pub(crate) async fn batch_consumer(&self, probe: &Arc<Probe<S>>) -> Result<Cast<S>, BoxError> {
        let store = FaultyStore::new(self.ledger.store().await?, Script::record());
        let outage = store.outage();
        Ok(Cast { consumer: quick(Consumer::batch(store, Many(Arc::clone(probe))))?, outage })
    }

    /// Starts a consumer on this scene's subscription, over a connection of its own.
    pub(crate) async fn start(&self, cast: Cast<S>) -> Result<Player, BoxError> {
        self.start_on(cast, self.stage.connect().await?, self.subscription.clone()).await
    }

    pub(crate) async fn start_on(
        &self,
        cast: Cast<S>,
        broker: Arc<dyn Broker>,
        subscription: Subscription,
    ) -> Result<Player, BoxError> {
        let tally = Tally::default();
        let running = tally.of(cast.consumer.start(broker, subscription)).await?;
        let health = running.health();
        self.within("the consumer is ready", until(|| health.is_ready())).await?;
        Ok(Player { running, health, tally, outage: cast.outage })
    }

    /// The same over a broker whose calls go through a script.
    pub(crate) async fn start_scripted(&self, cast: Cast<S>, script: &Script) -> Result<Player, BoxError> {
        let broker = Arc::new(FaultyBroker::new(self.stage.connect().await?, script.clone()));
        self.start_on(cast, broker, self.subscription.clone()).await
    }

    /// Shuts a consumer down and waits for its end.
    pub(crate) async fn stop(&self, player: Player) -> Done {
        player.running.shut_down();
        Ok(self.within("the consumer ends", player.running.ended()).await??)
    }

    /// A database on a busy machine takes its time, however quick the broker is.
    pub(crate) fn patience(&self) -> Duration {
        self.stage.patience().max(Duration::from_secs(30))
    }

    /// Waits for something that must happen.
    pub(crate) async fn within<T>(&self, what: &str, future: impl Future<Output = T>) -> Result<T, BoxError> {
        let patience = self.patience();
        match tokio::time::timeout(patience, future).await {
            Ok(found) => Ok(found),
            Err(_) => Err(format!("waited {patience:?} in vain: {what}").into()),
        }
    }

    pub(crate) async fn send(&self, message: Message) -> Done {
        self.try_send(message).await?.map_err(Into::into)
    }

    pub(crate) async fn try_send(&self, message: Message) -> Result<Result<(), PublishError>, BoxError> {
        let sent = self.publisher.publish(Outgoing::new(self.to.clone(), message));
        Ok(self.within("the answer to a publish", sent).await?.map(drop))
    }

    /// Publishes until there is a positive answer, as one does whose connection was cut.
    pub(crate) async fn send_surely(&self, message: Message) -> Done {
        let sending = async {
            while let Err(error) = self.try_send(message.clone()).await? {
                if !error.is_retryable() {
                    return Err(error.into());
                }
                pause().await;
            }
            Ok::<_, BoxError>(())
        };
        self.within("a positive answer to a publish", sending).await?
    }

    /// Publishes the ids of a range.
    pub(crate) async fn send_ids(&self, range: Range<usize>) -> Done {
        for number in range {
            self.send(message(&id(number))).await?;
        }
        Ok(())
    }

    pub(crate) async fn depth(&self) -> Result<Depth, BoxError> {
        self.stage.depth(&self.subscription).await
    }

    /// Waits until the queue holds nothing, whatever was out included.
    pub(crate) async fn until_empty(&self) -> Done {
        self.until_total(0).await
    }

    pub(crate) async fn until_total(&self, total: u64) -> Done {
        let mut last = Depth::default();
        let looking = async {
            loop {
                last = self.depth().await?;
                if last.total() == total {
                    return Ok::<_, BoxError>(());
                }
                pause().await;
            }
        };
        match tokio::time::timeout(self.patience(), looking).await {
            Ok(result) => result,
            Err(_) => Err(format!("the queue holds {last:?}, and it should be {total} in all").into()),
        }
    }

    /// Waits until the effects are so many or more.
    pub(crate) async fn until_effects(&self, count: usize) -> Done {
        let looking = async {
            while self.ledger.effects().await?.len() < count {
                pause().await;
            }
            Ok::<_, BoxError>(())
        };
        self.within(&format!("{count} effects"), looking).await?
    }

    /// Fails unless these ids and no others have one effect each, of this scene's consumer.
    pub(crate) async fn each_once<I: AsRef<str>>(&self, ids: impl IntoIterator<Item = I>) -> Done {
        self.each_once_of(CONSUMER, ids).await
    }

    pub(crate) async fn each_once_of<I: AsRef<str>>(
        &self,
        consumer: &str,
        ids: impl IntoIterator<Item = I>,
    ) -> Done {
        let mut count: BTreeMap<String, i64> = BTreeMap::new();
        for id in ids {
            *count.entry(id.as_ref().to_owned()).or_default() -= 1;
        }
        for effect in self.effects_of(consumer).await? {
            *count.entry(String::from_utf8_lossy(&effect.id).into_owned()).or_default() += 1;
        }
        let wrong: Vec<_> = count.iter().filter(|(_, more)| **more != 0).take(10).collect();
        ensure!(wrong.is_empty(), "effects of {consumer} beyond (+) or short of (-) one each: {wrong:?}");
        Ok(())
    }

    pub(crate) async fn effects_of(&self, consumer: &str) -> Result<Vec<Effect>, BoxError> {
        let mut effects = self.ledger.effects().await?;
        effects.retain(|effect| effect.consumer == consumer);
        Ok(effects)
    }

    /// Takes exactly so many dead letters of this scene's consumer.
    pub(crate) async fn letters(&self, count: usize) -> Result<Vec<Message>, BoxError> {
        self.letters_of(&self.subscription, count).await
    }

    pub(crate) async fn letters_of(
        &self,
        subscription: &Subscription,
        count: usize,
    ) -> Result<Vec<Message>, BoxError> {
        let mut source = self.broker.dead_letters(subscription).await?;
        let mut letters = Vec::new();
        while letters.len() < count {
            let what = format!("dead letter {} of {count}", letters.len() + 1);
            for delivery in self.within(&what, source.recv(count)).await?? {
                letters.push((*delivery.message).clone());
                ack(delivery).await?;
            }
        }
        let more = tokio::time::timeout(self.stage.quiet(), source.recv(10)).await;
        if let Ok(Ok(more)) = more {
            let names: Vec<_> = more.into_iter().map(|delivery| name_of(&delivery.message)).collect();
            return Err(format!("more than {count} dead letters: {names:?}").into());
        }
        source.close().await?;
        Ok(letters)
    }

    /// Waits until a part says that it is down.
    pub(crate) async fn until_complaint(&self, player: &Player, part: &str) -> Done {
        let complains = || player.health.not_ready().iter().any(|complaint| complaint.part == part);
        self.within(&format!("a complaint of the {part}"), until(complains)).await
    }

    pub(crate) async fn until_ready(&self, player: &Player) -> Done {
        let mut last = Vec::new();
        let looking = async {
            loop {
                last = player.health.not_ready();
                if last.is_empty() {
                    return;
                }
                pause().await;
            }
        };
        if tokio::time::timeout(self.patience(), looking).await.is_err() {
            return Err(format!("it does not become ready: {last:?}").into());
        }
        Ok(())
    }

    pub(crate) async fn no_letters(&self) -> Done {
        self.letters(0).await.map(drop)
    }
}

impl<S: InboxStore> Drop for Scene<S> {
    fn drop(&mut self) {
        self.ticking.abort();
    }
}

/// Lets the stage's time pass, where it does not by itself.
async fn tick(stage: Arc<dyn Stage>) {
    loop {
        stage.pass(Duration::from_millis(20)).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The id of a number.
pub(crate) fn id(number: usize) -> String {
    format!("evt-{number:04}")
}

pub(crate) fn ids(range: Range<usize>) -> Vec<String> {
    range.map(id).collect()
}

/// A message with an id, whose body is the id.
pub(crate) fn message(id: &str) -> Message {
    Message::new(id.to_owned()).with_id(id.to_owned())
}

/// Looks until the condition holds. To be bounded by the caller.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        pause().await;
    }
}

/// Between two looks at something that nobody announces.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[expect(clippy::disallowed_methods, reason = "the suite takes the dead letters out")]
pub(crate) async fn ack(delivery: aftercommit_core::Delivery) -> Done {
    delivery.into_acker().ack().await?;
    Ok(())
}
