//! The broker suite on a queue in an SQLite file, as tests with the trials' names.

mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::broker::{self, BrokerFixture};
use aftercommit_conformance::trial;

fn main() -> ExitCode {
    let fixture: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture);
    broker::main(&fixture, trial::runtime)
}
