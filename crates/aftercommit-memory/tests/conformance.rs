//! The broker suite on memory, as tests with the trials' names.

mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::broker::{self, BrokerFixture};

fn main() -> ExitCode {
    let fixture: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture::default());
    broker::main(&fixture, stage::runtime)
}
