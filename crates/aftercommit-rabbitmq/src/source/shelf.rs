//! Deliveries between the broker and `recv`: those that just came and those that were given back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aftercommit_core::{Delivery, Message, Redelivered, Redelivery, Settled};
use lapin::Channel;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::acker::RabbitAcker;

/// One generation: the channel that deliveries came over. It ends once and for all.
#[derive(Debug)]
pub(crate) struct Line {
    channel: Channel,
    ended: AtomicBool,
}

impl Line {
    pub(super) const fn new(channel: Channel) -> Self {
        Self { channel, ended: AtomicBool::new(false) }
    }

    pub(crate) const fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) || !self.channel.status().connected()
    }
}

/// A delivery that nobody holds.
#[derive(Debug)]
pub(crate) struct Item {
    message: Arc<Message>,
    redelivered: Redelivered,
    tag: u64,
    line: Arc<Line>,
}

impl Item {
    pub(super) fn new(message: Message, redelivered: bool, tag: u64, line: Arc<Line>) -> Self {
        let redelivered = if redelivered { Redelivered::Yes } else { Redelivered::No };
        Self { message: Arc::new(message), redelivered, tag, line }
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    pub(crate) const fn tag(&self) -> u64 {
        self.tag
    }

    pub(super) fn hand_out(self, shelf: &Arc<Shelf>) -> Delivery {
        let (message, redelivered) = (Arc::clone(&self.message), self.redelivered);
        Delivery::new(message, redelivered, Box::new(RabbitAcker::new(self, Arc::clone(shelf))))
    }
}

/// Holds no more than the prefetch: what lies here is unsettled at the broker.
#[derive(Debug)]
pub(crate) struct Shelf {
    longest: Duration,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Item>,
    /// By due time; the number keeps those of one instant apart and in order.
    held: BTreeMap<(Instant, u64), Item>,
    numbers: u64,
}

impl Shelf {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, state: Mutex::default(), changed: Notify::new() }
    }

    /// The longest delay that a delivery may be given back for.
    pub(crate) const fn longest(&self) -> Duration {
        self.longest
    }

    pub(super) fn put(&self, item: Item) {
        self.lock().ready.push_back(item);
        self.changed.notify_one();
    }

    /// Takes a delivery back; `Err` if its line has ended.
    pub(crate) fn give_back(&self, mut item: Item, when: Redelivery) -> Result<Settled, ()> {
        let mut state = self.lock();
        // Under the lock, since `end` clears the shelf under it.
        if item.line.is_ended() {
            return Err(());
        }
        let delay = match when {
            Redelivery::Now => Duration::ZERO,
            Redelivery::After(delay) => delay,
        };
        // It was handed out before now, whatever the broker said when it came.
        item.redelivered = Redelivered::Yes;
        let number = state.numbers;
        state.numbers += 1;
        state.held.insert((Instant::now() + delay, number), item);
        drop(state);
        self.changed.notify_one();
        Ok(Settled::Staged)
    }

    /// Ends a line: what it brought and nobody holds is dropped, ackers that are out are lost.
    pub(super) fn end(&self, line: &Line) {
        let mut state = self.lock();
        line.ended.store(true, Ordering::Release);
        state.ready.clear();
        state.held.clear();
    }

    /// Waits for deliveries. Cancel safe: nothing is taken before the answer.
    pub(super) async fn take(&self, max: usize) -> Vec<Item> {
        loop {
            let due = match self.lock().take(max, Instant::now()) {
                Ok(items) => return items,
                Err(due) => due,
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Up to `max` deliveries, those due again first; else when the next one is due.
    fn take(&mut self, max: usize, now: Instant) -> Result<Vec<Item>, Option<Instant>> {
        let mut items = Vec::new();
        while items.len() < max {
            let Some(entry) = self.held.first_entry().filter(|entry| entry.key().0 <= now) else { break };
            items.push(entry.remove());
        }
        while items.len() < max
            && let Some(item) = self.ready.pop_front()
        {
            items.push(item);
        }
        if items.is_empty() { Err(self.held.keys().next().map(|key| key.0)) } else { Ok(items) }
    }
}
