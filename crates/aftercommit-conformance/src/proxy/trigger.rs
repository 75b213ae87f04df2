use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Direction, Pattern};

/// A fault that waits for its moment. It fires once, and stays armed when this handle is dropped.
#[derive(Clone, Debug)]
#[must_use = "a fault that never happened has tested nothing: ask whether it has fired"]
pub struct Trigger {
    armed: Arc<Armed>,
}

impl Trigger {
    pub(super) const fn new(armed: Arc<Armed>) -> Self {
        Self { armed }
    }

    /// Waits until it has fired and the fault has happened.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn fired(&self) {
        // Fails only without a sender, which self holds.
        let _ = self.armed.fired.subscribe().wait_for(|fired| *fired).await;
    }

    /// Whether the fault has happened.
    #[must_use]
    pub fn has_fired(&self) -> bool {
        *self.armed.fired.borrow()
    }

    /// Takes it back unless it has fired.
    pub fn disarm(&self) {
        self.armed.spent.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(super) enum Condition {
    Bytes(u64),
    Before(Pattern),
    After(Pattern),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Cut,
    SwallowAnswers,
}

#[derive(Debug)]
pub(super) struct Armed {
    direction: Direction,
    condition: Condition,
    reaction: Reaction,
    spent: AtomicBool,
    fired: watch::Sender<bool>,
}

impl Armed {
    pub(super) fn new(direction: Direction, condition: Condition, reaction: Reaction) -> Self {
        let spent = AtomicBool::new(false);
        Self { direction, condition, reaction, spent, fired: watch::Sender::new(false) }
    }

    pub(super) const fn reaction(&self) -> Reaction {
        self.reaction
    }

    /// The fault has happened.
    pub(super) fn happened(&self) {
        self.fired.send_replace(true);
    }

    fn is_spent(&self) -> bool {
        self.spent.load(Ordering::SeqCst)
    }

    /// True for one caller only.
    fn take(&self) -> bool {
        !self.spent.swap(true, Ordering::SeqCst)
    }

    fn reached(&self, track: &mut Track, newest: &[u8]) -> Option<usize> {
        match &self.condition {
            Condition::Bytes(n) => {
                let left = n.saturating_sub(track.passed);
                track.passed += newest.len() as u64;
                usize::try_from(left).ok().filter(|left| *left <= newest.len())
            }
            Condition::Before(pattern) => pattern.find(&mut track.earlier, newest).map(|found| found.start),
            Condition::After(pattern) => pattern.find(&mut track.earlier, newest).map(|found| found.end),
        }
    }
}

/// How far one direction of one connection has come towards one trigger.
#[derive(Debug, Default)]
struct Track {
    passed: u64,
    earlier: Vec<u8>,
}

/// The same towards all triggers, by their number.
#[derive(Debug, Default)]
pub(super) struct Tracks(HashMap<u64, Track>);

/// A trigger that goes off after so many of the newest bytes.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) at: usize,
    pub(super) trigger: Arc<Armed>,
}

/// The triggers of one proxy.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    armed: Mutex<Vec<(u64, Arc<Armed>)>>,
    last_number: AtomicU64,
}

impl Triggers {
    pub(super) fn add(&self, trigger: Arc<Armed>) {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed);
        self.lock().push((number, trigger));
    }

    /// Which triggers go off within the newest bytes, in order, up to the first that cuts.
    pub(super) fn meet(&self, direction: Direction, tracks: &mut Tracks, newest: &[u8]) -> Vec<Hit> {
        let mut armed = self.lock();
        armed.retain(|(_, trigger)| !trigger.is_spent());
        tracks.0.retain(|number, _| armed.iter().any(|(n, _)| n == number));
        let mut hits = Vec::new();
        for (number, trigger) in armed.iter().filter(|(_, trigger)| trigger.direction == direction) {
            let track = tracks.0.entry(*number).or_default();
            if let Some(at) = trigger.reached(track, newest) {
                hits.push(Hit { at, trigger: Arc::clone(trigger) });
            }
        }
        hits.sort_by_key(|hit| hit.at);
        take_to_first_cut(hits)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Arc<Armed>)>> {
        // A predicate may panic while this is held; the list is whole all the same.
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_to_first_cut(hits: Vec<Hit>) -> Vec<Hit> {
    let mut taken = Vec::new();
    for hit in hits {
        if !hit.trigger.take() {
            continue;
        }
        let last = hit.trigger.reaction() == Reaction::Cut;
        taken.push(hit);
        if last {
            break;
        }
    }
    taken
}
