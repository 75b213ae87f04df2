//! Connections: what is dropped leaves nothing behind, and nobody is starved.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::BoxError;
use aftercommit_inbox::{Fault, InboxStore, Session};

use super::cases;
use crate::store::scene::{Done, Ids, Scene, ensure, expect_fault, ids};
use crate::store::stage::{Act, StoreStage};

cases! { "session":
    dropped_at_any_step_it_leaves_nothing,
    dropped_futures_leave_nothing,
    an_empty_pool_is_unavailable,
    discarded_sessions_make_room,
    it_may_end_outside_a_runtime,
    some_connections_are_left_for_others,
    calls_out_of_order_are_refused,
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn dropped_at_any_step_it_leaves_nothing<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::with_connections(stage, 2).await?;
    let one = ids(&["1"])?;
    for step in 0..8 {
        let mut session = scene.store.open().await?;
        walk(&scene, &mut session, &one, step).await?;
        drop(session);
        scene.until_none_is_open().await?;
        scene.expect_effects(&[]).await?;
        scene.expect_claims(&Ids(Vec::new())).await?;
    }
    let mut session = scene.store.open().await?;
    scene.goes_on(&mut session).await
}

/// The first `steps` calls of a transaction that stops short of its commit.
async fn walk<S: InboxStore>(scene: &Scene<S>, session: &mut S::Session, ids: &Ids, steps: usize) -> Done {
    for step in 0..steps {
        match step {
            0 => session.begin().await?,
            1 => drop(session.claim(&scene.consumer, &ids.refs()).await?),
            2 => session.savepoint().await?,
            3 => scene.act(session, Act::Effect("1")).await?,
            4 => session.release().await?,
            5 => scene.act(session, Act::Nested("2")).await?,
            _ => session.prove(&scene.consumer, &ids.refs()).await?,
        }
    }
    Ok(())
}

/// H06: futures dropped at all moments of a transaction, then normal work on the same small pool.
async fn dropped_futures_leave_nothing<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::with_connections(stage, 2).await?;
    let whole = {
        let start = std::time::Instant::now();
        let mut session = scene.store.open().await?;
        scene.handle(&mut session, &ids(&["measured"])?).await?;
        start.elapsed()
    };
    const ROUNDS: u32 = 60;
    for round in 0..ROUNDS {
        let one = ids(&[format!("dropped-{round:02}")])?;
        let work = async {
            let mut session = scene.store.open().await?;
            scene.handle(&mut session, &one).await?;
            session.record_failure(&scene.consumer, &one.0[0], "x").await?;
            Ok::<_, BoxError>(())
        };
        // From at once to a little later than a whole transaction takes.
        match tokio::time::timeout(whole.mul_f64(1.5) * round / ROUNDS, work).await {
            Ok(done) => done?,
            Err(_) => tokio::task::yield_now().await,
        }
    }
    scene.until_none_is_open().await?;
    let mut expected = scene.stage.effects().await?;
    let mut session = scene.store.open().await?;
    for number in 0..20 {
        let one = format!("normal-{number:02}");
        scene.handle(&mut session, &ids(&[&one])?).await?;
        expected.push(one);
    }
    expected.sort();
    scene.expect_effects(&expected.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let claims = scene.stage.claims().await?.len();
    ensure!(claims == expected.len(), "{claims} claims and {} effects", expected.len());
    drop(session);
    scene.until_none_is_open().await
}

async fn an_empty_pool_is_unavailable<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::with_connections(stage, 1).await?;
    let held = scene.store.open().await?;
    expect_fault("taking a second of one connection", scene.store.open().await, Fault::Unavailable)?;
    drop(held);
    let mut session = scene.within("the connection is free again", scene.store.open()).await??;
    scene.goes_on(&mut session).await
}

async fn discarded_sessions_make_room<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::with_connections(stage, 2).await?;
    let one = ids(&["1"])?;
    for step in 0..16 {
        let mut session = scene.within("a connection", scene.store.open()).await??;
        walk(&scene, &mut session, &one, step % 8).await?;
        session.discard();
    }
    scene.until_none_is_open().await?;
    scene.expect_effects(&[]).await
}

async fn it_may_end_outside_a_runtime<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let at_rest = scene.store.open().await?;
    let open = scene.claimed(&ids(&["1"])?).await?;
    let ended =
        tokio::task::spawn_blocking(|| std::thread::spawn(move || drop((at_rest, open))).join().is_ok());
    ensure!(ended.await?, "a session that was dropped outside a runtime panicked");
    scene.until_none_is_open().await
}

async fn some_connections_are_left_for_others<S: InboxStore>(stage: Stage<S>) -> Done {
    for connections in [1, 2, 3, 10] {
        let store = stage.store(connections).await?;
        let most = usize::try_from(connections)?.saturating_sub(2).max(1);
        let sessions = store.max_sessions();
        ensure!(
            (1..=most).contains(&sessions),
            "{sessions} of {connections} connections may be held for good"
        );
    }
    Ok(())
}

async fn calls_out_of_order_are_refused<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.store.open().await?;
    ensure!(
        session.claim(&scene.consumer, &one.refs()).await.is_err(),
        "a claim outside a transaction succeeded"
    );
    ensure!(session.prove(&scene.consumer, &[]).await.is_err(), "a proof outside a transaction succeeded");
    ensure!(session.savepoint().await.is_err(), "a savepoint outside a transaction succeeded");
    ensure!(session.commit().await.is_err(), "a commit outside a transaction succeeded");
    session.begin().await?;
    ensure!(session.begin().await.is_err(), "a transaction began inside another one");
    let counted = session.record_failure(&scene.consumer, &one.0[0], "x").await;
    ensure!(counted.is_err(), "a failure was counted inside a transaction, with which it may go");
    session.rollback().await?;
    scene.expect_claims(&Ids(Vec::new())).await?;
    tokio::time::timeout(Duration::from_secs(10), scene.goes_on(&mut session)).await?
}
