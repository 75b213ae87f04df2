//! The inbox suite on memory with Postgres.

#[path = "../../crates/aftercommit-memory/tests/stage/mod.rs"]
#[expect(dead_code, reason = "its runtime has virtual time, which databases do not know")]
mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::broker::BrokerFixture;
use aftercommit_conformance::{inbox, trial};
use aftercommit_integration_tests::books::PostgresBooks;

fn main() -> ExitCode {
    let broker: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture::default());
    inbox::main(&broker, &Arc::new(PostgresBooks), trial::runtime)
}
