//! The broker suite on a private RabbitMQ node, for both types of queues.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod server;
mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_conformance::broker::{self, BrokerFixture};
use aftercommit_conformance::trial::{self, Outcome, Trial};
use aftercommit_rabbitmq::QueueType;

fn main() -> ExitCode {
    let trials = [("quorum", QueueType::Quorum), ("classic", QueueType::Classic)]
        .into_iter()
        .flat_map(|(name, queue_type)| {
            let fixture: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture { queue_type });
            let deadline = fixture.deadline();
            broker::trials(&fixture).into_iter().map(move |trial| named(name, &trial, deadline))
        })
        .collect();
    trial::main(trials, trial::runtime)
}

/// The same trial under the name of its queue type.
fn named(prefix: &str, trial: &Trial, deadline: std::time::Duration) -> Trial {
    let inner = trial.clone();
    let body = move || {
        let inner = inner.clone();
        Box::pin(async move {
            match inner.run().await {
                Outcome::Passed => Ok(()),
                Outcome::Failed(reason) => Err(reason.into()),
                Outcome::Absent(absent) => Err(format!("it needs {}", absent.what).into()),
            }
        }) as _
    };
    let mut named = Trial::new(format!("{prefix}::{}", trial.name()), deadline * 2, Arc::new(body));
    if trial.is_alone() {
        named = named.alone();
    }
    match trial.absent() {
        Some(absent) => named.without(absent.clone()),
        None => named,
    }
}
