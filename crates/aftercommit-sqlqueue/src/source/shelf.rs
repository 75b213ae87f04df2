//! What a source has out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::table::{Claimed, Lease, Token};

/// A lease in somebody's hands.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    lease: Lease,
    lost: Arc<AtomicBool>,
}

impl Held {
    pub(crate) const fn lease(&self) -> Lease {
        self.lease
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

struct Out {
    token: Token,
    lost: Arc<AtomicBool>,
    /// Set when the acker was dropped: the lease is not renewed and its place is free when it ends.
    ends: Option<Instant>,
}

/// The leases of one source, by position.
pub(crate) struct Shelf {
    prefetch: usize,
    visibility: Duration,
    out: Mutex<HashMap<i64, Out>>,
    room: Notify,
    closed: AtomicBool,
}

impl Shelf {
    pub(super) fn new(prefetch: usize, visibility: Duration) -> Self {
        let (out, room) = (Mutex::default(), Notify::new());
        Self { prefetch, visibility, out, room, closed: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Out>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many may be claimed now.
    pub(super) fn room(&self) -> usize {
        self.prefetch.saturating_sub(self.lock().len())
    }

    pub(super) async fn wait_for_room(&self) {
        self.room.notified().await;
    }

    /// Takes what was claimed. A message that is still out under another claim is known to be lost there.
    pub(super) fn put(&self, leases: Vec<(Lease, Claimed)>) -> Vec<(Held, Claimed)> {
        let mut out = self.lock();
        let put = leases.into_iter().map(|(lease, claimed)| {
            let lost = Arc::new(AtomicBool::new(false));
            let entry = Out { token: lease.token, lost: Arc::clone(&lost), ends: None };
            if let Some(before) = out.insert(lease.position, entry) {
                before.lost.store(true, Ordering::Relaxed);
            }
            (Held { lease, lost }, claimed)
        });
        put.collect()
    }

    /// What is to be renewed.
    pub(super) fn to_renew(&self) -> Vec<Lease> {
        let out = self.lock();
        let in_hand = out.iter().filter(|(_, out)| out.ends.is_none());
        in_hand.map(|(&position, out)| Lease { position, token: out.token }).collect()
    }

    /// Everything that is unsettled, dropped or not.
    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().iter().map(|(&position, out)| Lease { position, token: out.token }).collect()
    }

    /// Takes out what is no longer ours.
    pub(super) fn lose(&self, lost: &[Lease]) {
        for lease in lost {
            self.take_out(*lease, |out| out.lost.store(true, Ordering::Relaxed));
        }
    }

    pub(crate) fn remove(&self, lease: Lease) {
        self.take_out(lease, |_| {});
    }

    fn take_out(&self, lease: Lease, last: impl FnOnce(&Out)) {
        let mut out = self.lock();
        if out.get(&lease.position).is_some_and(|out| out.token == lease.token)
            && let Some(taken) = out.remove(&lease.position)
        {
            last(&taken);
            self.room.notify_one();
        }
    }

    /// Nobody can settle it any more.
    pub(crate) fn abandon(&self, lease: Lease) {
        let mut out = self.lock();
        if let Some(out) = out.get_mut(&lease.position).filter(|out| out.token == lease.token) {
            out.ends = Some(Instant::now() + self.visibility);
        }
    }

    /// Frees the places of abandoned leases that have ended.
    pub(super) fn clear(&self) {
        let now = Instant::now();
        let mut out = self.lock();
        let before = out.len();
        out.retain(|_, out| out.ends.is_none_or(|ends| ends > now));
        if out.len() < before {
            self.room.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}
