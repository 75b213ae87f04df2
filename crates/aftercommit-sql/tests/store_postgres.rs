//! The store suite on PostgreSQL, as tests with the trials' names.

mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::store::{self, StoreFixture};
use aftercommit_conformance::trial;
use aftercommit_sql::PgInbox;

fn main() -> ExitCode {
    let fixture: Arc<dyn StoreFixture<PgInbox>> = Arc::new(stage::postgres::Fixture);
    store::main(&fixture, trial::runtime)
}
