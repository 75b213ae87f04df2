//! The short form of `cargo xtask soak`: every kind of fault, a few times. Needs the programs of PostgreSQL and RabbitMQ.

use std::time::Duration;

use aftercommit_integration_tests::soak::{Plan, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_published_is_applied_once_or_parked_over_kills_and_outages() {
    let program = env!("CARGO_BIN_EXE_soak").into();
    run(Plan { faults: Duration::from_secs(15), seed: 3, program }).await;
}
