//! Deliveries on their way from the source to the lanes.

mod in_flight;

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aftercommit_core::{Delivery, MessageId};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::job::Sorted;
use in_flight::InFlight;

/// Hands deliveries to lanes. One key always goes to the same lane, so that messages of a key never
/// overtake each other; messages without a key go to whichever lane is free. It holds no more than
/// the source's prefetch: nothing in it is settled, and what a reconnect made void goes when its
/// successors come.
#[derive(Debug)]
pub(crate) struct Dispatch {
    state: Mutex<State>,
    wake: Vec<Notify>,
}

#[derive(Debug)]
struct State {
    shared: VecDeque<(Instant, Delivery)>,
    keyed: Vec<VecDeque<(Instant, Delivery)>>,
    /// Lanes that wait, the longest waiting first. A lane that was woken stays here until it takes.
    idle: VecDeque<Idle>,
    in_flight: InFlight,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Idle {
    lane: usize,
    woken: bool,
}

impl Dispatch {
    pub(crate) fn new(lanes: usize) -> Self {
        let state = State {
            shared: VecDeque::new(),
            keyed: (0..lanes).map(|_| VecDeque::new()).collect(),
            idle: VecDeque::new(),
            in_flight: InFlight::default(),
            closed: false,
        };
        Self { state: Mutex::new(state), wake: (0..lanes).map(|_| Notify::new()).collect() }
    }

    /// Adds a delivery. Answers how many void ones went.
    pub(crate) fn push(&self, delivery: Delivery) -> usize {
        let mut state = self.lock();
        let now = Instant::now();
        let void;
        let woken = if let Some(key) = &delivery.message.key {
            let lane = lane_of(key, state.keyed.len());
            void = forget_void(&mut state.keyed[lane]);
            state.keyed[lane].push_back((now, delivery));
            state.wake(|idle| idle.lane == lane)
        } else {
            void = forget_void(&mut state.shared);
            state.shared.push_back((now, delivery));
            state.wake(|_| true)
        };
        drop(state);
        self.wake_up(woken);
        void
    }

    /// Waits for deliveries for a lane: at least one, at most `max`; a batch that is not full waits
    /// until its oldest delivery is `max_wait` old. `None` once closed, even if deliveries are left.
    pub(crate) async fn take(&self, lane: usize, max: usize, max_wait: Duration) -> Option<Vec<Delivery>> {
        loop {
            let patience = {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                let waiting = state.keyed[lane].len() + state.shared.len();
                let due = state.oldest(lane).map(|oldest| oldest + max_wait);
                let is_due = due.is_some_and(|due| waiting >= max || due <= Instant::now());
                if is_due {
                    let taken = state.drain(lane, max);
                    let left = !state.shared.is_empty();
                    let woken = if left { state.wake(|_| true) } else { None };
                    drop(state);
                    self.wake_up(woken);
                    return Some(taken);
                }
                state.rest(lane);
                due
            };
            let woken = self.wake[lane].notified();
            match patience {
                // Being woken early is fine: the loop looks again.
                Some(due) => drop(tokio::time::timeout_at(due, woken).await),
                None => woken.await,
            }
        }
    }

    /// A lane begins with a batch. What another lane is working on is taken out of it, and handed out again when that
    /// is done.
    pub(crate) fn begin(&self, sorted: &mut Sorted) -> Vec<MessageId> {
        self.lock().in_flight.enter(sorted)
    }

    /// The lane is done with what it began.
    pub(crate) fn done(&self, ids: &[MessageId]) {
        let waiting = self.lock().in_flight.leave(ids);
        for delivery in waiting {
            self.push(delivery);
        }
    }

    /// Ends every `take` and answers what nobody took. What lanes lay down after that is answered the next time.
    pub(crate) fn close(&self) -> Vec<Delivery> {
        let mut state = self.lock();
        state.closed = true;
        let shared = std::mem::take(&mut state.shared);
        let keyed = state.keyed.iter_mut().flat_map(std::mem::take);
        let queued: Vec<_> = shared.into_iter().chain(keyed).map(|(_, delivery)| delivery).collect();
        let mut left = state.in_flight.take_waiting();
        left.extend(queued);
        drop(state);
        for lane in &self.wake {
            lane.notify_one();
        }
        left
    }

    fn wake_up(&self, lane: Option<usize>) {
        if let Some(lane) = lane {
            self.wake[lane].notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Picks a lane to wake, if one that `may` take it waits and was not woken already.
    fn wake(&mut self, may: impl Fn(Idle) -> bool) -> Option<usize> {
        let idle = self.idle.iter_mut().find(|idle| !idle.woken && may(**idle))?;
        idle.woken = true;
        Some(idle.lane)
    }

    /// The lane found nothing to take.
    fn rest(&mut self, lane: usize) {
        match self.idle.iter_mut().find(|idle| idle.lane == lane) {
            Some(idle) => idle.woken = false,
            None => self.idle.push_back(Idle { lane, woken: false }),
        }
    }

    fn oldest(&self, lane: usize) -> Option<Instant> {
        [self.keyed[lane].front(), self.shared.front()].into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// The oldest first, whether keyed or shared. Of the shared ones no more than a fair part while
    /// other lanes are idle: then the database is not the limit, and waiting in one batch only costs
    /// time.
    fn drain(&mut self, lane: usize, max: usize) -> Vec<Delivery> {
        self.idle.retain(|idle| idle.lane != lane);
        let others = self.idle.len();
        let mut fair = self.shared.len().div_ceil(others + 1);
        let mut taken = Vec::with_capacity(max.min(self.keyed[lane].len() + fair));
        while taken.len() < max {
            let own = self.keyed[lane].front().map(|(at, _)| *at);
            let shared = self.shared.front().filter(|_| fair > 0).map(|(at, _)| *at);
            let next = match (own, shared) {
                (Some(own), Some(shared)) if shared < own => self.shared.pop_front(),
                (Some(_), _) => self.keyed[lane].pop_front(),
                (None, Some(_)) => self.shared.pop_front(),
                (None, None) => break,
            };
            let Some((_, delivery)) = next else { break };
            if delivery.message.key.is_none() {
                fair -= 1;
            }
            taken.push(delivery);
        }
        taken
    }
}

/// Deliveries of one connection end together and the oldest is in front: it tells of the others.
fn forget_void(queue: &mut VecDeque<(Instant, Delivery)>) -> usize {
    if !queue.front().is_some_and(|(_, delivery)| delivery.is_lost()) {
        return 0;
    }
    let before = queue.len();
    queue.retain(|(_, delivery)| !delivery.is_lost());
    before - queue.len()
}

fn lane_of(key: &[u8], lanes: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    // The remainder is below `lanes`, which is a usize.
    usize::try_from(hasher.finish() % lanes.max(1) as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
