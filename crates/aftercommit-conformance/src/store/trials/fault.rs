//! What errors mean: by code, along the chain, never by text.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use aftercommit_core::BoxError;
use aftercommit_inbox::{Fault, InboxStore, Session};

use super::cases;
use crate::store::scene::{Done, Ids, Scene, ensure, fault, ids};
use crate::store::stage::{Act, StoreStage};

cases! { "fault":
    what_is_behind_an_error_counts,
    other_errors_are_the_handlers_own,
    texts_mislead_nobody,
    a_conflict_in_any_language_is_one [RaisedCodes],
    an_ended_connection_is_unavailable [Kill],
}

type Stage<S> = Arc<dyn StoreStage<S>>;

/// An application's own error around another one.
#[derive(Debug)]
struct Around(BoxError);

impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reservation failed")
    }
}

impl Error for Around {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

fn judge<S: InboxStore>(store: &S, error: BoxError) -> Option<Fault> {
    store.classify(&Around(Box::new(Around(error))))
}

async fn what_is_behind_an_error_counts<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::with_connections(stage, 1).await?;
    let _held = scene.store.open().await?;
    let Err(error) = scene.store.open().await else {
        return Err("a second of one connection was given out".into());
    };
    let found = judge(&scene.store, Box::new(error));
    ensure!(found == Some(Fault::Unavailable), "an empty pool behind two errors is {found:?}");
    Ok(())
}

async fn other_errors_are_the_handlers_own<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let foreign = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let found = judge(&scene.store, Box::new(foreign));
    ensure!(found.is_none(), "an error that is not the database's is {found:?}");
    let mut session = scene.claimed(&ids(&["1"])?).await?;
    let Err(error) = scene.act(&mut session, Act::Fail).await else {
        return Err("a statement that must fail did not".into());
    };
    let found = judge(&scene.store, error);
    ensure!(found.is_none(), "a wrong statement is {found:?}");
    Ok(session.rollback().await?)
}

/// H07.
async fn texts_mislead_nobody<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.claimed(&ids(&["1"])?).await?;
    let Err(error) = scene.act(&mut session, Act::Misleading).await else {
        return Err("an act that must fail did not".into());
    };
    let found = judge(&scene.store, error);
    ensure!(found.is_none(), "an error that only speaks of conflicts is {found:?}");
    Ok(())
}

/// H07.
async fn a_conflict_in_any_language_is_one<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.claimed(&ids(&["1"])?).await?;
    let Err(error) = scene.act(&mut session, Act::ForeignConflict).await else {
        return Err("an act that must fail did not".into());
    };
    let found = judge(&scene.store, error);
    ensure!(found == Some(Fault::Conflict), "a serialization failure is {found:?}");
    session.rollback().await?;
    scene.goes_on(&mut session).await
}

async fn an_ended_connection_is_unavailable<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    scene.stage.kill().await?;
    let Err(error) = scene.act(&mut session, Act::Effect("2")).await else {
        return Err("a statement on an ended connection succeeded".into());
    };
    let found = judge(&scene.store, error);
    ensure!(found == Some(Fault::Unavailable), "an ended connection is {found:?} to the handler");
    let found = fault(session.prove(&scene.consumer, &one.refs()).await)?;
    ensure!(found == Fault::Unavailable, "an ended connection is {found:?} to the store");
    session.discard();
    scene.expect_effects(&[]).await?;
    scene.expect_claims(&Ids(Vec::new())).await?;
    let mut session = scene.within("a new connection", scene.store.open()).await??;
    scene.goes_on(&mut session).await
}
