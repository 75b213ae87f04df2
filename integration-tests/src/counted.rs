//! Metrics of this process, kept so that a test can read them by consumer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, set_global_recorder,
};

/// All counters of this process, from the first call of [`Counted::install`] on.
#[derive(Clone, Debug, Default)]
pub struct Counted(Arc<Mutex<HashMap<Key, Arc<AtomicU64>>>>);

impl Counted {
    /// Makes this process count; consumers that were started before are not seen.
    ///
    /// # Panics
    ///
    /// When another recorder is installed.
    pub fn install() -> Self {
        static ONE: OnceLock<Counted> = OnceLock::new();
        let install = || {
            let counted = Self::default();
            set_global_recorder(counted.clone()).expect("the only recorder of this process");
            counted
        };
        ONE.get_or_init(install).clone()
    }

    /// The counter `name` of a consumer, with this value in one of its labels.
    #[must_use]
    pub fn of(&self, consumer: &str, name: &str, label: &str) -> u64 {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |key: &Key, value: &str| key.labels().any(|known| known.value() == value);
        let found = counters.iter().filter(|(key, _)| {
            key.name() == name && has(key, consumer) && (label.is_empty() || has(key, label))
        });
        found.map(|(_, counter)| counter.load(Ordering::SeqCst)).sum()
    }
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Counter::from_arc(Arc::clone(counters.entry(key.clone()).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
