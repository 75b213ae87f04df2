//! Settling.

use std::sync::Arc;

use async_trait::async_trait;

use aftercommit_core::{Acker, Delay, Redelivery, SettleError, Settled};

use crate::broken::Broken;
use crate::event::{Event, Position};
use crate::shared::Shared;
use crate::state::State;
use crate::subscriber::Handle;

pub(crate) struct MemoryAcker {
    shared: Arc<Shared>,
    handle: Handle,
    used: bool,
}

impl MemoryAcker {
    pub(crate) const fn new(shared: Arc<Shared>, handle: Handle) -> Self {
        Self { shared, handle, used: false }
    }
}

#[async_trait]
impl Acker for MemoryAcker {
    async fn ack(mut self: Box<Self>) -> Result<Settled, SettleError> {
        self.used = true;
        self.shared.change(|state| state.ack(&self.handle))
    }

    async fn give_back(mut self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError> {
        self.used = true;
        self.shared.change(|state| state.give_back(&self.handle, when))
    }

    fn is_lost(&self) -> bool {
        let state = self.shared.lock();
        state.is(Broken::IsLostLies) || !state.is_ours(&self.handle)
    }
}

impl Drop for MemoryAcker {
    fn drop(&mut self) {
        if !self.used && self.shared.lock().is(Broken::DropSettles) {
            // Broken on purpose, and whether it was still ours makes no difference here.
            let _ = self.shared.change(|state| state.ack(&self.handle));
        }
    }
}

impl State {
    fn is_ours(&self, handle: &Handle) -> bool {
        self.subscribers
            .get(&handle.subscriber)
            .is_some_and(|subscriber| subscriber.attached && subscriber.epoch == handle.epoch)
    }

    /// Why a settlement cannot be made, or what it answers instead with a switch on.
    fn not_ours(&mut self, handle: &Handle) -> Option<Result<Settled, SettleError>> {
        let closed = !self.subscribers.contains_key(&handle.subscriber);
        if self.is_ours(handle) {
            return None;
        }
        let lying = if closed { Broken::ClosedSaysConfirmed } else { Broken::StaleSaysConfirmed };
        if self.is(lying) {
            return Some(Ok(Settled::Confirmed));
        }
        self.events.push(Event::Lost { queue: handle.queue.clone() });
        let reason = if closed { "the source was closed" } else { "the connection it came over has ended" };
        Some(Err(SettleError::lost(reason)))
    }

    fn ack(&mut self, handle: &Handle) -> Result<Settled, SettleError> {
        if let Some(answer) = self.not_ours(handle) {
            if self.is(Broken::StaleAckSettles) {
                for position in self.take_out(handle, Broken::AckTakesAllBefore) {
                    self.settle(&handle.queue, position);
                }
            }
            return answer;
        }
        if self.is(Broken::AckForgets) {
            return Ok(Settled::Confirmed);
        }
        let honest = self.is(Broken::CloseForgetsStaged);
        let staged = honest || self.is(Broken::AckOnlyStaged);
        for position in self.take_out(handle, Broken::AckTakesAllBefore) {
            if staged && let Some(subscriber) = self.subscribers.get_mut(&handle.subscriber) {
                subscriber.staged.push(position);
            } else {
                self.settle(&handle.queue, position);
            }
        }
        Ok(if honest { Settled::Staged } else { Settled::Confirmed })
    }

    fn settle(&mut self, queue: &str, position: Position) {
        let entry = self.queues.get_mut(queue).and_then(|queue| queue.remove(position));
        if let Some(entry) = entry {
            let queue = queue.to_owned();
            self.events.push(Event::Settled { queue, id: entry.message.id, position });
        }
    }

    fn take_out(&mut self, handle: &Handle, all_before: Broken) -> Vec<Position> {
        let all = self.is(all_before);
        let Some(subscriber) = self.subscribers.get_mut(&handle.subscriber) else { return Vec::new() };
        if !all {
            return subscriber.out.remove(&handle.tag).into_iter().collect();
        }
        let rest = subscriber.out.split_off(&(handle.tag + 1));
        std::mem::replace(&mut subscriber.out, rest).into_values().collect()
    }

    /// Settles what is only staged; done when the source is closed.
    pub(crate) fn flush(&mut self, number: u64) {
        let Some(subscriber) = self.subscribers.get_mut(&number) else { return };
        let queue = subscriber.queue.clone();
        if self.broken.contains(&Broken::CloseForgetsStaged) {
            return;
        }
        for position in std::mem::take(&mut subscriber.staged) {
            self.settle(&queue, position);
        }
    }

    fn give_back(&mut self, handle: &Handle, when: Redelivery) -> Result<Settled, SettleError> {
        if let Some(answer) = self.not_ours(handle) {
            if self.is(Broken::StaleGiveBackActs) {
                for position in self.take_out(handle, Broken::GiveBackTakesAllBefore) {
                    self.return_one(handle, position, when);
                }
            }
            return answer;
        }
        let longest = self.settings.delay.longest();
        let when = match when {
            Redelivery::After(wait) if wait > longest && !self.is(Broken::LongDelayShortened) => {
                return Err(SettleError::Unsupported {
                    product: crate::broker::PRODUCT,
                    request: format!("keep a message back for {wait:?}, the most is {longest:?}"),
                });
            }
            Redelivery::After(_) if self.is(Broken::AfterComesAtOnce) => Redelivery::Now,
            when => when,
        };
        if self.is(Broken::GiveBackForgets) {
            return Ok(Settled::Confirmed);
        }
        for position in self.take_out(handle, Broken::GiveBackTakesAllBefore) {
            self.return_one(handle, position, when);
        }
        Ok(Settled::Confirmed)
    }

    fn return_one(&mut self, handle: &Handle, position: Position, when: Redelivery) {
        let (losing, never) = (self.is(Broken::GiveBackLoses), self.is(Broken::AfterNeverComes));
        let limited = self.is(Broken::GiveBackSpendsLimit);
        let held = matches!(self.settings.delay, Delay::Held { .. });
        let Some(queue) = self.queues.get_mut(&handle.queue) else { return };
        let Some(entry) = queue.entries.get_mut(&position) else { return };
        entry.given_back += 1;
        let losing = losing || (limited && entry.given_back > 20);
        let id = entry.message.id.clone();
        match (when, self.subscribers.get_mut(&handle.subscriber)) {
            _ if losing => {
                queue.remove(position);
            }
            (Redelivery::Now, _) => queue.put_back(position),
            (Redelivery::After(_), _) if never => {}
            (Redelivery::After(wait), Some(subscriber)) if held => {
                subscriber.held.insert((self.now + wait, position));
            }
            (Redelivery::After(wait), _) => queue.put_back_at(self.now + wait, position),
        }
        self.events.push(Event::GivenBack { queue: handle.queue.clone(), id, position, when });
    }
}
