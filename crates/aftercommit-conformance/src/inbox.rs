//! The trials that the consumer core must pass on every product with every database.
//!
//! A caller gives a [`BrokerFixture`] and [`Books`]: the product, and the database with a table of
//! effects that has no unique key, since that would hide a broken inbox. The trials start the real
//! consumer, publish to it, do to it what happens in the field, and count effects from a connection
//! of their own.
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     aftercommit_conformance::inbox::main(&broker, &books, runtime)
//! }
//! ```

mod books;
mod cast;
mod probe;
mod scene;
mod tally;
mod trials;

pub use books::{Books, Effect, Ledger};

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::runtime::Runtime;

use crate::broker::{Ability, BrokerFixture};
use crate::trial::{self, Absent, Trial};

/// Every trial of the suite, bound to a product and a database.
pub fn trials<B: Books>(broker: &Arc<dyn BrokerFixture>, books: &Arc<B>) -> Vec<Trial> {
    let absent = broker.absent();
    let bound = trials::all::<B::Store>().into_iter().map(|case| {
        let lacks = absent.iter().find(|(ability, _)| case.needs.contains(ability));
        let lone = books.one_writer().filter(|_| case.parallel);
        let alone = case.needs.contains(&Ability::Restart);
        let trial = bind(&case, Arc::clone(broker), Arc::clone(books));
        let trial = if alone { trial.alone() } else { trial };
        match (lacks, lone) {
            (Some((ability, reason)), _) => {
                trial.without(Absent { what: format!("{ability:?}"), reason: (*reason).to_owned() })
            }
            (None, Some(reason)) => {
                trial.without(Absent { what: "parallel transactions".into(), reason: reason.to_owned() })
            }
            (None, None) => trial,
        }
    });
    bound.collect()
}

/// Runs the suite as tests with the trials' names, each on a runtime of its own, which must run in
/// real time: databases do.
pub fn main<B: Books>(
    broker: &Arc<dyn BrokerFixture>,
    books: &Arc<B>,
    runtime: fn() -> std::io::Result<Runtime>,
) -> ExitCode {
    trial::main(trials(broker, books), runtime)
}

fn bind<B: Books>(case: &trials::Case<B::Store>, broker: Arc<dyn BrokerFixture>, books: Arc<B>) -> Trial {
    let (name, deadline, run) = (case.name, broker.deadline(), case.run);
    let body = move || -> BoxFuture<'static, _> {
        let (broker, books) = (Arc::clone(&broker), Arc::clone(&books));
        Box::pin(async move {
            let stage = broker.stage(name).await?;
            let ledger = books.open(name).await?;
            let scene = scene::Scene::open(Arc::clone(&stage), Arc::clone(&ledger)).await?;
            run(scene).await?;
            // After a failure things are left as they were found, and consumers still run on them.
            stage.strike().await?;
            ledger.strike().await
        })
    };
    Trial::new(name, deadline, Arc::new(body))
}
