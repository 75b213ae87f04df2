//! The inbox suite on a queue in an SQLite file with Sqlite.

#[path = "../../crates/aftercommit-sqlqueue/tests/stage/mod.rs"]
mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::broker::BrokerFixture;
use aftercommit_conformance::{inbox, trial};
use aftercommit_integration_tests::books::SqliteBooks;

fn main() -> ExitCode {
    let broker: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture);
    inbox::main(&broker, &Arc::new(SqliteBooks), trial::runtime)
}
