//! The inbox suite on RabbitMQ, quorum and classic queues, with Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../../crates/aftercommit-rabbitmq/tests/conformance/server.rs"]
mod server;
#[path = "../../crates/aftercommit-rabbitmq/tests/conformance/stage.rs"]
mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::broker::BrokerFixture;
use aftercommit_conformance::{inbox, trial};
use aftercommit_integration_tests::books::PostgresBooks;
use aftercommit_rabbitmq::QueueType;

fn main() -> ExitCode {
    let trials = [("quorum", QueueType::Quorum), ("classic", QueueType::Classic)].into_iter().flat_map(
        |(name, queue_type)| {
            let broker: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture { queue_type });
            inbox::trials(&broker, &Arc::new(PostgresBooks)).into_iter().map(move |trial| trial.under(name))
        },
    );
    trial::main(trials.collect(), trial::runtime)
}
