use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::counts::Counters;
use super::trigger::Triggers;

/// What the proxy's handle and its connections have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) counts: Counters,
    pub(super) triggers: Triggers,
    blackhole: AtomicBool,
    latency_nanos: AtomicU64,
}

impl Shared {
    pub(super) fn is_blackhole(&self) -> bool {
        self.blackhole.load(Ordering::SeqCst)
    }

    pub(super) fn set_blackhole(&self, on: bool) {
        self.blackhole.store(on, Ordering::SeqCst);
    }

    pub(super) fn latency(&self) -> Duration {
        Duration::from_nanos(self.latency_nanos.load(Ordering::SeqCst))
    }

    pub(super) fn set_latency(&self, each_way: Duration) {
        // Saturates at five centuries.
        let nanos = u64::try_from(each_way.as_nanos()).unwrap_or(u64::MAX);
        self.latency_nanos.store(nanos, Ordering::SeqCst);
    }
}
