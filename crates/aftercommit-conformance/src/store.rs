//! The trials that an [`InboxStore`] must pass.
//!
//! A database gives a [`StoreFixture`]: how to make a store over fresh tables, how to write as a
//! handler does, how to look from outside. The trials are the promises on [`InboxStore`] and
//! [`Session`](aftercommit_inbox::Session), one each. What a database cannot do is stated by the
//! fixture with its reason ([`StoreFixture::absent`]) and listed as absent; it never passes silently.
//!
//! [`Broken`] is the suite's own test: a store with one promise broken per switch.

mod broken;
mod fixture;
mod scene;
mod stage;
mod trials;

pub use broken::{Broken, BrokenFixture, BrokenSession, BrokenStore};
pub use fixture::{Ability, StoreFixture};
pub use stage::{Act, Attempts, Lost, StoreStage};

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit_inbox::InboxStore;
use futures_util::future::BoxFuture;
use tokio::runtime::Runtime;

use crate::trial::{self, Absent, Trial};

/// Every trial of the suite, bound to a fixture.
pub fn trials<S: InboxStore>(fixture: &Arc<dyn StoreFixture<S>>) -> Vec<Trial> {
    let absent = fixture.absent();
    trials::all::<S>()
        .map(|case| {
            let lacks = absent.iter().find(|(ability, _)| case.needs.contains(ability));
            let trial = bind(&case, Arc::clone(fixture));
            match lacks {
                Some((ability, reason)) => {
                    trial.without(Absent { what: format!("{ability:?}"), reason: (*reason).to_owned() })
                }
                None => trial,
            }
        })
        .collect()
}

/// Runs the suite as tests with the trials' names, each on a runtime of its own.
pub fn main<S: InboxStore>(
    fixture: &Arc<dyn StoreFixture<S>>,
    runtime: fn() -> std::io::Result<Runtime>,
) -> ExitCode {
    trial::main(trials(fixture), runtime)
}

fn bind<S: InboxStore>(case: &trials::Case<S>, fixture: Arc<dyn StoreFixture<S>>) -> Trial {
    let (name, run) = (case.name, case.run);
    let deadline = fixture.deadline();
    let body = move || -> BoxFuture<'static, _> {
        let fixture = Arc::clone(&fixture);
        Box::pin(async move {
            let stage = fixture.stage(name).await?;
            let result = run(Arc::clone(&stage)).await;
            stage.strike().await?;
            result
        })
    };
    Trial::new(name, deadline, Arc::new(body))
}
