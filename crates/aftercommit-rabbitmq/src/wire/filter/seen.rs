use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// What the filter of one connection took from its frames.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    returned: Mutex<HashSet<Vec<u8>>>,
    raw_ids: Mutex<HashMap<(u16, u64), Bytes>>,
}

impl Seen {
    /// Whether the publish with this nonce was returned. Asked once per confirm: the broker sends the
    /// return first, and the filter notes it before lapin is given any later byte.
    pub(crate) fn take_returned(&self, nonce: &str) -> bool {
        lock(&self.returned).remove(nonce.as_bytes())
    }

    /// The id of a delivery, if it was not text.
    pub(crate) fn take_raw_id(&self, channel: u16, tag: u64) -> Option<Bytes> {
        lock(&self.raw_ids).remove(&(channel, tag))
    }

    pub(super) fn note_returned(&self, nonce: Vec<u8>) {
        lock(&self.returned).insert(nonce);
    }

    pub(super) fn note_raw_id(&self, channel: u16, tag: u64, id: Vec<u8>) {
        lock(&self.raw_ids).insert((channel, tag), Bytes::from(id));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
