//! A trial as data, so that a suite can be listed, run by a test harness or run by a program.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Runtime;

use aftercommit_core::{BoxError, chain};

/// What a trial's body is: made anew for each run.
pub type Body = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// One trial of a suite.
#[derive(Clone)]
pub struct Trial {
    name: String,
    deadline: Duration,
    absent: Option<Absent>,
    alone: bool,
    body: Body,
}

/// Something that a product or its fixture lacks, and why. A trial that needs it is not run and
/// says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// What is lacking.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What it asked for holds.
    Passed,
    /// It does not, and how.
    Failed(String),
    /// It was not run: neither good nor bad.
    Absent(Absent),
}

impl Trial {
    /// A trial that fails when its body does, or does not end by the deadline.
    pub fn new(name: impl Into<String>, deadline: Duration, body: Body) -> Self {
        Self { name: name.into(), deadline, absent: None, alone: false, body }
    }

    /// The same trial, not to be run.
    #[must_use]
    pub fn without(mut self, absent: Absent) -> Self {
        self.absent = Some(absent);
        self
    }

    /// The same trial, to be run while no other one runs: it does something to the whole server.
    /// [`main`] sees to that; who runs trials by program must.
    #[must_use]
    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Whether it must run [`alone`](Self::alone).
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// The same trial with a name in front of its own, for a suite that runs in several variants.
    #[must_use]
    pub fn under(mut self, variant: &str) -> Self {
        self.name = format!("{variant}::{}", self.name);
        self
    }

    /// The trial's name: `topic::what_holds`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it lacks, if it will not be run.
    #[must_use]
    pub const fn absent(&self) -> Option<&Absent> {
        self.absent.as_ref()
    }

    /// Runs it on the current runtime.
    ///
    /// # Cancel safety
    /// A dropped future ends the trial in the middle; what it made at a broker may stay.
    pub async fn run(&self) -> Outcome {
        if let Some(absent) = &self.absent {
            return Outcome::Absent(absent.clone());
        }
        // A product that panics has failed this trial and must not end the others.
        let body = AssertUnwindSafe((self.body)()).catch_unwind();
        match tokio::time::timeout(self.deadline, body).await {
            Ok(Ok(Ok(()))) => Outcome::Passed,
            Ok(Ok(Err(error))) => Outcome::Failed(chain(error.as_ref())),
            Ok(Err(panic)) => Outcome::Failed(format!("it panicked: {}", panic_text(panic.as_ref()))),
            Err(_) => Outcome::Failed(format!("it did not end within {:?}", self.deadline)),
        }
    }
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial")
            .field("name", &self.name)
            .field("absent", &self.absent)
            .finish_non_exhaustive()
    }
}

/// A runtime for trials against a real server: two threads, real time.
///
/// # Errors
/// When the system gives no threads.
pub fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Trials mostly wait: for servers, for deadlines, for something not to happen.
const PER_PROCESSOR: usize = 4;

/// Runs trials as tests with their names, each on a runtime of its own. Trials that lack something
/// are listed as ignored, with what they lack. `--test-threads` says how many run at a time, by default four per
/// processor.
pub fn main(trials: Vec<Trial>, runtime: fn() -> std::io::Result<Runtime>) -> ExitCode {
    let mut arguments = libtest_mimic::Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    arguments.test_threads.get_or_insert(PER_PROCESSOR * processors);
    let server = Arc::new(RwLock::new(()));
    let tests = trials.into_iter().map(|trial| as_test(trial, runtime, Arc::clone(&server))).collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn as_test(
    trial: Trial,
    runtime: fn() -> std::io::Result<Runtime>,
    server: Arc<RwLock<()>>,
) -> libtest_mimic::Trial {
    let kind = trial.absent().map(|absent| format!("absent: {}, {}", absent.what, absent.reason));
    let name = trial.name().to_owned();
    let test = libtest_mimic::Trial::test(name, move || {
        // Outside the runtime, so that waiting for one's turn is not counted as the trial's time.
        let (_alone, _beside);
        if trial.is_alone() {
            _alone = server.write().unwrap_or_else(PoisonError::into_inner);
        } else {
            _beside = server.read().unwrap_or_else(PoisonError::into_inner);
        }
        match runtime()?.block_on(trial.run()) {
            Outcome::Passed => Ok(()),
            Outcome::Failed(reason) => Err(reason.into()),
            Outcome::Absent(absent) => Err(format!("it needs {}: {}", absent.what, absent.reason).into()),
        }
    });
    match kind {
        Some(kind) => test.with_kind(kind).with_ignored_flag(true),
        None => test,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
