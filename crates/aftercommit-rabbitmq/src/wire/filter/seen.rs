use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

/// What the filter of one connection took from its frames.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    returned: Mutex<HashSet<Vec<u8>>>,
    raw_ids: Mutex<HashMap<(u16, u64), Bytes>>,
    server_version: OnceLock<String>,
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

    /// The server's major version, as it says in its first frame.
    pub(crate) fn server_major(&self) -> Option<u32> {
        self.server_version.get()?.split('.').next()?.parse().ok()
    }

    pub(super) fn note_version(&self, version: &[u8]) {
        // A connection has one first frame.
        let _ = self.server_version.set(String::from_utf8_lossy(version).into_owned());
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
