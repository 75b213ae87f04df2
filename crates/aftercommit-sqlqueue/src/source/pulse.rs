//! Whether a source works, from what its reads and its writes say apart: a file that can be read and not written is down,
//! and a read that works again says nothing of writing.

use std::sync::{Mutex, PoisonError};

use aftercommit_core::{Signal, chain};

use super::fetch::Fetched;
use crate::error::FileError;

pub(super) struct Pulse {
    queue: String,
    signal: Signal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reading: Option<String>,
    writing: Option<String>,
    ended: bool,
}

impl Pulse {
    /// Up: a source is opened on what was just read.
    pub(super) fn new(queue: &str) -> Self {
        let signal = Signal::new("source", "opening");
        signal.set_up();
        Self { queue: queue.to_owned(), signal, state: Mutex::default() }
    }

    pub(super) fn signal(&self) -> Signal {
        self.signal.clone()
    }

    /// What a fetch says: one that found nothing to claim has not written.
    pub(super) fn hear(&self, fetched: &Fetched) {
        match fetched {
            Fetched::Some(_) => self.update(|state| (state.reading, state.writing) = (None, None)),
            Fetched::Nothing => self.read(&Ok(true)),
            Fetched::Missing => self.read(&Ok(false)),
            Fetched::NotRead(error) => self.update(|state| state.reading = Some(chain(error))),
            Fetched::NotClaimed(error) => self.update(|state| state.writing = Some(chain(error))),
        }
    }

    /// Whether the queue is there.
    pub(super) fn read(&self, found: &Result<bool, FileError>) {
        let reading = match found {
            Ok(true) => None,
            Ok(false) => Some(format!("queue {} does not exist; declare the subscription", self.queue)),
            Err(error) => Some(chain(error)),
        };
        self.update(|state| state.reading = reading);
    }

    pub(super) fn wrote<T>(&self, result: &Result<T, FileError>) {
        let writing = result.as_ref().err().map(|error| chain(error));
        self.update(|state| state.writing = writing);
    }

    /// Whether the last write failed.
    pub(super) fn cannot_write(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).writing.is_some()
    }

    pub(super) fn end(&self) {
        self.update(|state| state.ended = true);
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let reason = match &*state {
            State { ended: true, .. } => Some("closed".to_owned()),
            State { reading, writing, .. } => reading.clone().or_else(|| writing.clone()),
        };
        match (self.signal.is_up(), reason) {
            (was_up, Some(reason)) => {
                if was_up && !state.ended {
                    tracing::warn!(queue = self.queue, reason, "the source is down");
                }
                self.signal.set_down(reason);
            }
            (false, None) => {
                tracing::info!(queue = self.queue, "the source is up again");
                self.signal.set_up();
            }
            (true, None) => {}
        }
    }
}
