//! One open subscription as the broker sees it: tags, what is out, what is held back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aftercommit_core::Signal;

use crate::event::Position;

/// Names one delivery on the wire. Tags begin anew with each epoch, as a real broker's do with each
/// channel: an acker that outlives its epoch has a tag that means another message, or none.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) subscriber: u64,
    pub(crate) epoch: u64,
    pub(crate) tag: u64,
    pub(crate) queue: String,
}

#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) connection: u64,
    pub(crate) queue: String,
    pub(crate) prefetch: usize,
    pub(crate) epoch: u64,
    pub(crate) attached: bool,
    pub(crate) health: Signal,
    pub(crate) out: BTreeMap<u64, Position>,
    pub(crate) held: BTreeSet<(Duration, Position)>,
    pub(crate) staged: Vec<Position>,
    /// In the client and not handed out: empty, except with a switch on.
    pub(crate) buffered: VecDeque<Position>,
    next_tag: u64,
}

impl Subscriber {
    pub(crate) const fn new(connection: u64, queue: String, prefetch: usize, health: Signal) -> Self {
        Self {
            connection,
            queue,
            prefetch,
            epoch: 0,
            attached: false,
            health,
            out: BTreeMap::new(),
            held: BTreeSet::new(),
            staged: Vec::new(),
            buffered: VecDeque::new(),
            next_tag: 1,
        }
    }

    pub(crate) fn hand_out(&mut self, position: Position) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.out.insert(tag, position);
        tag
    }

    pub(crate) fn take_due(&mut self, now: Duration) -> Option<Position> {
        let &(due, _) = self.held.first()?;
        if due > now {
            return None;
        }
        self.held.pop_first().map(|(_, position)| position)
    }

    /// Ends the epoch and answers what was unsettled in it.
    pub(crate) fn end_epoch(&mut self) -> Vec<Position> {
        self.epoch += 1;
        self.next_tag = 1;
        let staged = std::mem::take(&mut self.staged);
        let buffered = std::mem::take(&mut self.buffered);
        let out = std::mem::take(&mut self.out).into_values();
        let held = std::mem::take(&mut self.held).into_iter().map(|(_, position)| position);
        out.chain(held).chain(staged).chain(buffered).collect()
    }
}
