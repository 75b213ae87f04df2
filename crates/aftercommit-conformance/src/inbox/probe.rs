//! A handler that does what a trial tells it, and remembers its calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use aftercommit_core::dead_letter::readable;
use aftercommit_core::{Failure, Message};
use aftercommit_inbox::{BatchHandler, Handled, Handler, InboxStore};

use super::books::{Effect, Ledger};
use crate::broker::Stage;
use crate::faults::FaultyStore;

/// What a call does. All of them write their effect first, so that whatever is not committed can
/// be seen to be absent.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Apply,
    Reject,
    /// Fails transiently.
    Fail,
    /// The world is not as it should be.
    Invariant,
    /// Says that our own infrastructure is away.
    Infrastructure,
    Panic,
    /// Never returns.
    Hang,
    /// Runs a statement that fails, ignores that and goes on.
    Swallow,
    /// Ends the transaction behind the inbox's back.
    Raw(&'static str),
    /// Waits for a permit and applies.
    Wait(Arc<Semaphore>),
    /// Waits for a permit and finds that the world is not as it should be.
    WaitInvariant(Arc<Semaphore>),
    /// Takes its time and applies.
    Slow(Duration),
    /// Takes its time and fails transiently.
    SlowFail(Duration),
}

/// One call of the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The message's native id as text, or its body where it has none.
    pub(crate) id: String,
    /// How often this id has been handled, this call included.
    pub(crate) nth: usize,
    /// When it began, by the stage's clock.
    pub(crate) at: Duration,
    pub(crate) key: Option<String>,
}

type Plan = Box<dyn Fn(&Call) -> Step + Send + Sync>;

pub(crate) struct Probe<S: InboxStore> {
    consumer: String,
    stage: Arc<dyn Stage>,
    ledger: Arc<dyn Ledger<S>>,
    plan: Plan,
    seen: Mutex<Seen>,
    busy: AtomicUsize,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    times: HashMap<String, usize>,
    most_busy: usize,
    batches: Vec<usize>,
}

impl<S: InboxStore> Probe<S> {
    pub(crate) fn new(
        consumer: &str,
        stage: Arc<dyn Stage>,
        ledger: Arc<dyn Ledger<S>>,
        plan: impl Fn(&Call) -> Step + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (consumer, plan) = (consumer.to_owned(), Box::new(plan));
        Arc::new(Self { consumer, stage, ledger, plan, seen: Mutex::default(), busy: AtomicUsize::new(0) })
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.seen().calls.clone()
    }

    pub(crate) fn calls_of(&self, id: &str) -> usize {
        self.seen().times.get(id).copied().unwrap_or_default()
    }

    /// The most calls that ran at the same time.
    pub(crate) fn most_busy(&self) -> usize {
        self.seen().most_busy
    }

    /// The sizes of the batches, for a batch handler.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.seen().batches.clone()
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, message: &Message) -> (Call, Busy<'_>) {
        let id = name_of(message);
        let at = self.stage.now();
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        let mut seen = self.seen();
        let times = seen.times.entry(id.clone()).or_default();
        *times += 1;
        let nth = *times;
        let key = message.key.as_deref().map(|key| String::from_utf8_lossy(key).into_owned());
        let call = Call { id, nth, at, key };
        seen.calls.push(call.clone());
        seen.most_busy = seen.most_busy.max(busy);
        (call, Busy(&self.busy))
    }

    async fn work(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure> {
        let (call, _busy) = self.enter(message);
        let step = (self.plan)(&call);
        let effect = Effect {
            consumer: self.consumer.clone(),
            id: name_of(message).into_bytes(),
            note: readable(&String::from_utf8_lossy(message.body.as_deref().unwrap_or_default()), 200),
        };
        if matches!(step, Step::Swallow) {
            // A handler that does not look at its errors, and writes on.
            let _ = self.ledger.stumble(db).await;
            let _ = self.ledger.record(db, &effect).await;
            return Ok(Handled::Applied);
        }
        self.ledger.record(db, &effect).await?;
        match step {
            Step::Apply | Step::Swallow => Ok(Handled::Applied),
            Step::Reject => Ok(Handled::Rejected),
            Step::Fail => Err(Failure::transient("downstream\0 said 503")),
            Step::Invariant => Err(Failure::invariant("no such order")),
            Step::Infrastructure => Err(Failure::infrastructure("our cache is away")),
            // A panic like any other, without the hook: it writes the stack, which takes long and interests nobody.
            Step::Panic => std::panic::resume_unwind(Box::new(format!("the handler panics on {}", call.id))),
            Step::Hang => std::future::pending().await,
            Step::Raw(sql) => {
                // Whether the database lets it do so is the database's affair.
                let _ = self.ledger.raw(db, sql).await;
                Ok(Handled::Applied)
            }
            Step::Wait(permits) => {
                wait(&permits).await?;
                Ok(Handled::Applied)
            }
            Step::WaitInvariant(permits) => {
                wait(&permits).await?;
                Err(Failure::invariant("no such order"))
            }
            Step::Slow(time) => {
                tokio::time::sleep(time).await;
                Ok(Handled::Applied)
            }
            Step::SlowFail(time) => {
                tokio::time::sleep(time).await;
                Err(Failure::transient("downstream took its time and said 503"))
            }
        }
    }
}

async fn wait(permits: &Semaphore) -> Result<(), Failure> {
    let permit = permits.acquire().await.map_err(|_| Failure::transient("no more permits"))?;
    permit.forget();
    Ok(())
}

/// How the suite calls a message: by its native id, or by its body.
pub(crate) fn name_of(message: &Message) -> String {
    let id = message.id.as_deref().filter(|id| !id.is_empty());
    String::from_utf8_lossy(id.or(message.body.as_deref()).unwrap_or_default()).into_owned()
}

struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The probe as a handler of one message.
pub(crate) struct Single<S: InboxStore>(pub(crate) Arc<Probe<S>>);

#[async_trait]
impl<S: InboxStore> Handler<FaultyStore<S>> for Single<S> {
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        match message.body.as_deref() {
            Some(b"poison") => Err(Failure::poison("broken\0 body")),
            _ => Ok(()),
        }
    }

    async fn handle(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure> {
        self.0.work(db, message).await
    }
}

/// The probe as a handler of many messages.
pub(crate) struct Many<S: InboxStore>(pub(crate) Arc<Probe<S>>);

#[async_trait]
impl<S: InboxStore> BatchHandler<FaultyStore<S>> for Many<S> {
    async fn handle(&self, db: &mut S::Connection, messages: &[&Message]) -> Result<Vec<Handled>, Failure> {
        self.0.seen().batches.push(messages.len());
        let mut handled = Vec::with_capacity(messages.len());
        for message in messages {
            handled.push(self.0.work(db, message).await?);
        }
        Ok(handled)
    }
}
