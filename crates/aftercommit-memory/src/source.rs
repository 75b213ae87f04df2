//! Handing out.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;

use aftercommit_core::{
    Batch, Capabilities, Delivery, Message, Order, Redelivered, Settled, Signal, Source, SourceError,
};

use crate::acker::MemoryAcker;
use crate::broken::Broken;
use crate::event::{Event, Position};
use crate::shared::Shared;
use crate::state::State;
use crate::subscriber::Handle;

/// One hand-out: what the acker needs, the message, and whether it was handed out before.
struct Handed {
    handle: Handle,
    message: Message,
    again: bool,
}

pub(crate) struct MemorySource {
    shared: Arc<Shared>,
    subscriber: u64,
    prefetch: usize,
    health: Signal,
}

impl MemorySource {
    pub(crate) fn open(shared: Arc<Shared>, connection: u64, queue: &str, prefetch: usize) -> Self {
        let health = Signal::new("source", "not subscribed yet");
        let subscriber = shared.change(|state| state.subscribe(connection, queue, prefetch, health.clone()));
        Self { shared, subscriber, prefetch, health }
    }

    fn deliver(&self, handed: Vec<Handed>) -> Option<Batch> {
        let deliveries = handed.into_iter().map(|handed| {
            let redelivered = if handed.again { Redelivered::Yes } else { Redelivered::No };
            let acker = MemoryAcker::new(Arc::clone(&self.shared), handed.handle);
            Delivery::new(Arc::new(handed.message), redelivered, Box::new(acker))
        });
        Batch::new(deliveries.collect())
    }
}

#[async_trait]
impl Source for MemorySource {
    fn capabilities(&self) -> Capabilities {
        let state = self.shared.lock();
        let wrong = usize::from(state.is(Broken::PrefetchFigureWrong));
        let product = if state.is(Broken::NamesDiffer) { "in-memory" } else { crate::broker::PRODUCT };
        let mut capabilities = Capabilities::new(product, self.prefetch + wrong);
        capabilities.settled =
            if state.is(Broken::AckClaimsMore) { Settled::Sent } else { Settled::Confirmed };
        capabilities.order = Order::PerSource;
        capabilities.says_redelivered = true;
        capabilities.delay = state.settings.delay;
        capabilities
    }

    fn health(&self) -> Signal {
        self.health.clone()
    }

    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError> {
        loop {
            let handed = self.shared.until(|state| state.hand_out(self.subscriber, max).transpose()).await?;
            if self.shared.lock().is(Broken::RecvNotCancelSafe) {
                yield_once().await;
            }
            if let Some(batch) = self.deliver(handed) {
                return Ok(batch);
            }
        }
    }

    async fn close(self: Box<Self>) -> Result<(), SourceError> {
        if self.shared.lock().is(Broken::CloseWaitsForAckers) {
            let number = self.subscriber;
            self.shared.until(|state| state.nothing_is_out(number).then_some(())).await;
        }
        self.shared.change(|state| {
            state.flush(self.subscriber);
            state.unsubscribe(self.subscriber);
        });
        Ok(())
    }
}

impl Drop for MemorySource {
    fn drop(&mut self) {
        self.shared.change(|state| state.unsubscribe(self.subscriber));
    }
}

async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl State {
    /// What can be handed out now; `None` when that is nothing.
    fn hand_out(&mut self, number: u64, max: usize) -> Result<Option<Vec<Handed>>, SourceError> {
        let subscriber = self.subscribers.get(&number).ok_or(SourceError::Closed)?;
        if self.connections.get(&subscriber.connection).is_none_or(|connection| !connection.alive) {
            return Err(SourceError::Closed);
        }
        if subscriber.epoch > 0 && self.is(Broken::CutEndsSource) {
            return Err(SourceError::Backend { what: "the connection was cut".into(), source: None });
        }
        if !subscriber.attached {
            return Ok(None);
        }
        let max = match max {
            0 if self.is(Broken::RecvZeroHangs) => return Ok(None),
            _ if self.is(Broken::RecvIgnoresMax) => usize::MAX,
            max => max.max(1),
        };
        let name = subscriber.queue.clone();
        if self.is(Broken::RecvWaitsToFill) && self.queues.get(&name).is_some_and(|q| q.depth().ready < max) {
            return Ok(None);
        }
        let mut handed = Vec::new();
        while handed.len() < max
            && let Some(next) = self.hand_out_one(number, &name)
        {
            handed.push(next);
        }
        Ok((!handed.is_empty()).then_some(handed))
    }

    fn hand_out_one(&mut self, number: u64, name: &str) -> Option<Handed> {
        let position = self.next_for(number, name)?;
        let subscriber = self.subscribers.get_mut(&number)?;
        let tag = subscriber.hand_out(position);
        let handle = Handle { subscriber: number, epoch: subscriber.epoch, tag, queue: name.to_owned() };
        let queue = self.queues.get_mut(name)?;
        let entry = queue.entries.get_mut(&position)?;
        let handed_before = std::mem::replace(&mut entry.again, true);
        let message = entry.message.clone();
        if self.broken.contains(&Broken::DeadLettersLeave) && crate::topology::is_dead_letters(name) {
            queue.remove(position);
        }
        let again = match handed_before {
            true => !self.is(Broken::AgainSaysFirst),
            false => self.is(Broken::FirstSaysAgain),
        };
        let id = message.id.clone();
        self.events.push(Event::Delivered { queue: name.to_owned(), id, position, again: handed_before });
        Some(Handed { handle, message, again })
    }

    fn next_for(&mut self, number: u64, name: &str) -> Option<Position> {
        let (unbounded, uncounted) = (self.is(Broken::PrefetchUnbounded), self.is(Broken::HeldNotCounted));
        let (newest, greedy) = (self.is(Broken::OrderReversed), self.is(Broken::ClientBuffersAll));
        let subscriber = self.subscribers.get_mut(&number)?;
        if let Some(due) = subscriber.take_due(self.now) {
            return Some(due);
        }
        let held = if uncounted { 0 } else { subscriber.held.len() };
        if subscriber.out.len() + held >= subscriber.prefetch && !unbounded {
            return None;
        }
        let queue = self.queues.get_mut(name)?;
        queue.promote(self.now);
        if greedy {
            subscriber.buffered.extend(std::iter::from_fn(|| queue.take(newest)));
            return subscriber.buffered.pop_front();
        }
        queue.take(newest)
    }

    fn nothing_is_out(&self, number: u64) -> bool {
        self.subscribers.get(&number).is_none_or(|subscriber| subscriber.out.is_empty())
    }
}
