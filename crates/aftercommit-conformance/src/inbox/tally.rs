//! What one consumer counted, read through its metrics as an operator would.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::atomics::AtomicU64;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};

/// Counters and gauges by name and labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

impl Tally {
    /// Runs a future whose new instruments report here.
    pub(crate) async fn of<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| with_local_recorder(self, || future.as_mut().poll(context))).await
    }

    /// The sum of a counter over those of its label sets that contain `label`.
    pub(crate) fn count(&self, name: &str, label: &str) -> u64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hit = known.iter().filter(|(key, _)| key.starts_with(&format!("{name}{{")));
        hit.filter(|(key, _)| key.contains(label))
            .map(|(_, value)| value.load(std::sync::atomic::Ordering::SeqCst))
            .sum()
    }

    /// Messages with an outcome.
    pub(crate) fn outcome(&self, outcome: aftercommit_inbox::Outcome) -> u64 {
        self.count(aftercommit_inbox::metric::MESSAGES, &format!("outcome={};", outcome.as_str()))
    }

    fn slot(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={};", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.concat());
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default())
    }
}

impl Recorder for Tally {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.slot(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.slot(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
