//! One queue: what is in it and what may be handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aftercommit_core::Message;

use crate::event::Position;

/// How many messages a queue may hold, and what happens to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most messages, settled ones not counted.
    pub most: usize,
    /// What happens beyond.
    pub overflow: Overflow,
}

/// What a full queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It refuses the new message.
    Refuse,
    /// It drops the oldest message: a setting that breaks the promise.
    DropOldest,
}

/// What is in a queue, as seen from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Waiting to be handed out.
    pub ready: usize,
    /// Handed out and not settled, those that a client holds back included.
    pub unsettled: usize,
    /// Kept by the broker until they are due.
    pub waiting: usize,
}

impl Depth {
    /// All messages that are not settled.
    #[must_use]
    pub const fn total(self) -> usize {
        self.ready + self.unsettled + self.waiting
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) message: Message,
    /// Whether it was handed out before.
    pub(crate) again: bool,
    /// How often it was given back. Decides nothing, except with a switch on.
    pub(crate) given_back: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) entries: BTreeMap<Position, Entry>,
    ready: BTreeSet<Position>,
    waiting: BTreeSet<(Duration, Position)>,
    pub(crate) limit: Option<Limit>,
}

impl Queue {
    pub(crate) fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| limit.overflow == Overflow::Refuse && self.entries.len() >= limit.most)
    }

    pub(crate) fn push(&mut self, position: Position, message: Message) {
        self.entries.insert(position, Entry { message, again: false, given_back: 0 });
        self.ready.insert(position);
        while self.limit.is_some_and(|limit| self.entries.len() > limit.most) {
            let Some(oldest) = self.entries.keys().next().copied() else { return };
            self.remove(oldest);
        }
    }

    pub(crate) fn take(&mut self, newest: bool) -> Option<Position> {
        if newest { self.ready.pop_last() } else { self.ready.pop_first() }
    }

    /// Back to its place. A message that is gone stays gone.
    pub(crate) fn put_back(&mut self, position: Position) {
        if self.entries.contains_key(&position) {
            self.ready.insert(position);
        }
    }

    pub(crate) fn put_back_at(&mut self, due: Duration, position: Position) {
        if self.entries.contains_key(&position) {
            self.waiting.insert((due, position));
        }
    }

    /// What is kept until it is due.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &(Duration, Position)> {
        self.waiting.iter()
    }

    pub(crate) fn promote(&mut self, now: Duration) {
        while let Some(&(due, position)) = self.waiting.first()
            && due <= now
        {
            self.waiting.pop_first();
            self.ready.insert(position);
        }
    }

    pub(crate) fn remove(&mut self, position: Position) -> Option<Entry> {
        self.ready.remove(&position);
        self.waiting.retain(|(_, waiting)| *waiting != position);
        self.entries.remove(&position)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.ready.clear();
        self.waiting.clear();
    }

    pub(crate) fn depth(&self) -> Depth {
        let (ready, waiting) = (self.ready.len(), self.waiting.len());
        Depth { ready, waiting, unsettled: self.entries.len().saturating_sub(ready + waiting) }
    }
}
