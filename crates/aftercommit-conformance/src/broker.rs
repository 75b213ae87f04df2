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

#[cfg(test)]
mod tests;

pub use fixture::{Ability, BrokerFixture};
pub use stage::{Depth, Part, Stage};

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::runtime::Runtime;

use crate::trial::{self, Absent, Trial};

/// Every trial of the suite, bound to a fixture.
pub fn trials(fixture: &Arc<dyn BrokerFixture>) -> Vec<Trial> {
    let absent = fixture.absent();
    let lacks = |case: &trials::Case| absent.iter().find(|(ability, _)| case.needs.contains(ability));
    trials::all()
        .map(|case| {
            let mut trial = bind(case, Arc::clone(fixture));
            if case.needs.contains(&Ability::Restart) {
                trial = trial.alone();
            }
            match lacks(case) {
                Some((ability, reason)) => {
                    trial.without(Absent { what: format!("{ability:?}"), reason: (*reason).to_owned() })
                }
                None => trial,
            }
        })
        .collect()
}

/// Runs the suite as tests with the trials' names, each on a runtime of its own.
pub fn main(fixture: &Arc<dyn BrokerFixture>, runtime: fn() -> std::io::Result<Runtime>) -> ExitCode {
    trial::main(trials(fixture), runtime)
}

fn bind(case: &'static trials::Case, fixture: Arc<dyn BrokerFixture>) -> Trial {
    let deadline = fixture.deadline();
    let body = move || -> BoxFuture<'static, _> {
        let fixture = Arc::clone(&fixture);
        Box::pin(async move {
            let stage = fixture.stage(case.name).await?;
            let result = (case.run)(Arc::clone(&stage)).await;
            stage.strike().await?;
            result
        })
    };
    Trial::new(case.name, deadline, Arc::new(body))
}
