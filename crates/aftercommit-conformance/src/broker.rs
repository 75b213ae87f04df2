//! The trials that a [`Broker`](aftercommit_core::Broker) must pass.
//!
//! A product gives a [`BrokerFixture`]: how to connect, how to look at a queue from outside, how to
//! cut a connection. The trials are the promises on the traits of `aftercommit-core`, one each.
//! What a product cannot do is stated by the fixture with its reason ([`BrokerFixture::absent`]) and
//! listed as absent; it never passes silently.

mod fixture;
mod scene;
mod stage;
mod trials;

pub use fixture::{Ability, BrokerFixture};
pub use stage::{Depth, Part, Stage};

use std::process::ExitCode;
use std::sync::Arc;

use tokio::sync::RwLock;

use crate::trial::{self, Absent, Trial};

/// Every trial of the suite, bound to a fixture.
pub fn trials(fixture: &Arc<dyn BrokerFixture>) -> Vec<Trial> {
    let absent = fixture.absent();
    // A restart of the server hits everybody's trials; the others run side by side.
    let server = Arc::new(RwLock::new(()));
    trials::all()
        .map(|case| {
            let trial = bind(case, Arc::clone(fixture), Arc::clone(&server));
            let missing = absent.iter().find(|(ability, _)| case.needs.contains(ability));
            match missing {
                Some((ability, reason)) => {
                    trial.without(Absent { what: format!("{ability:?}"), reason: (*reason).to_owned() })
                }
                None => trial,
            }
        })
        .collect()
}

/// Runs the suite as tests with the trials' names.
pub fn main(
    fixture: &Arc<dyn BrokerFixture>,
    runtime: fn() -> std::io::Result<tokio::runtime::Runtime>,
) -> ExitCode {
    trial::main(trials(fixture), runtime)
}

fn bind(case: &'static trials::Case, fixture: Arc<dyn BrokerFixture>, server: Arc<RwLock<()>>) -> Trial {
    let deadline = fixture.deadline();
    let body = move || -> futures_util::future::BoxFuture<'static, _> {
        let (fixture, server) = (Arc::clone(&fixture), Arc::clone(&server));
        Box::pin(async move {
            let (_alone, _beside);
            if case.needs.contains(&Ability::Restart) {
                _alone = server.write().await;
            } else {
                _beside = server.read().await;
            }
            let stage = fixture.stage(case.name).await?;
            let result = (case.run)(Arc::clone(&stage)).await;
            stage.strike().await?;
            result
        })
    };
    Trial::new(case.name, deadline, Arc::new(body))
}
