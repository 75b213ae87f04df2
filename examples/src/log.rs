use std::collections::HashMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aftercommit::Outcome;
use aftercommit::inbox::metric;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SetRecorderError, SharedString, Unit,
};
use tracing_subscriber::EnvFilter;

use crate::BoxError;

/// Logs warnings and errors to the standard error, or what `RUST_LOG` says. The AMQP client is left out: it calls its
/// own farewells errors.
pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,lapin=off"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
}

/// An error goes to the standard error with everything below it; `false` is a failure too.
#[must_use]
pub fn exit_code(result: Result<bool, BoxError>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            let mut next = error.source();
            while let Some(source) = next {
                eprintln!("  because: {source}");
                next = source.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// The counters of this process, as any recorder of the `metrics` crate sees them. A service has an exporter in
/// this place.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Mutex<HashMap<Key, Arc<AtomicU64>>>>);

impl Counters {
    /// Records from now on; before a consumer is started.
    ///
    /// # Errors
    /// When there is a recorder already.
    pub fn install() -> Result<Self, SetRecorderError<Self>> {
        let counters = Self::default();
        metrics::set_global_recorder(counters.clone())?;
        Ok(counters)
    }

    /// How many messages had this outcome so far.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        let is_it = |key: &Key| {
            key.name() == metric::MESSAGES && key.labels().any(|label| label.value() == outcome.as_str())
        };
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.iter().filter(|(key, _)| is_it(key)).map(|(_, n)| n.load(Ordering::Relaxed)).sum()
    }
}

impl Recorder for Counters {
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
