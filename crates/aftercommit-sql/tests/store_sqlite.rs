//! The store suite on SQLite, as tests with the trials' names.

mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::store::{self, StoreFixture};
use aftercommit_conformance::trial;
use aftercommit_sql::SqliteInbox;

fn main() -> ExitCode {
    let fixture: Arc<dyn StoreFixture<SqliteInbox>> = Arc::new(stage::sqlite::Fixture(std::env::temp_dir()));
    store::main(&fixture, trial::runtime)
}
