//! Claims and the handler's writes stay together or go together.

use std::sync::Arc;

use aftercommit_inbox::{Fault, InboxStore, Session};

use super::cases;
use crate::store::scene::{Done, Scene, ensure, expect_fault, ids};
use crate::store::stage::{Act, StoreStage};

cases! { "transaction":
    a_commit_keeps_claim_and_effect,
    a_rollback_leaves_nothing,
    what_was_released_stays,
    what_was_rolled_back_goes_alone,
    nested_transactions_are_savepoints,
    an_unclaimed_id_can_be_claimed_again,
    only_own_claims_can_be_given_up,
    one_session_serves_many_transactions,
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn a_commit_keeps_claim_and_effect<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    scene.expect_effects(&[]).await?;
    scene.finish(&mut session, &one).await?;
    scene.expect_effects(&["1"]).await?;
    scene.expect_claims(&one).await
}

async fn a_rollback_leaves_nothing<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    session.prove(&scene.consumer, &one.refs()).await?;
    session.rollback().await?;
    scene.expect_effects(&[]).await?;
    scene.expect_claims(&ids::<&str>(&[])?).await?;
    let again = scene.handle(&mut session, &one).await?;
    ensure!(again.new == 1, "a claim survived its rollback");
    Ok(())
}

async fn what_was_released_stays<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let two = ids(&["1", "2"])?;
    let mut session = scene.claimed(&two).await?;
    for effect in ["1", "2"] {
        session.savepoint().await?;
        scene.act(&mut session, Act::Effect(effect)).await?;
        session.release().await?;
    }
    scene.finish(&mut session, &two).await?;
    scene.expect_effects(&["1", "2"]).await
}

/// The second pass over a batch: each handler in a savepoint, failed ones give their claim up.
async fn what_was_rolled_back_goes_alone<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let all = ids(&["1", "2", "3", "4", "5"])?;
    let mut session = scene.claimed(&all).await?;
    for (effect, good) in [("1", true), ("2", false), ("3", false), ("4", true), ("5", false)] {
        session.savepoint().await?;
        scene.act(&mut session, Act::Effect(effect)).await?;
        if good {
            session.release().await?;
        } else {
            let failed = scene.act(&mut session, Act::Fail).await;
            ensure!(failed.is_err(), "a statement that must fail did not");
            session.rollback_to().await?;
            session.unclaim(&scene.consumer, &ids(&[effect])?.refs()).await?;
        }
    }
    let kept = ids(&["1", "4"])?;
    scene.finish(&mut session, &kept).await?;
    scene.expect_effects(&["1", "4"]).await?;
    scene.expect_claims(&kept).await?;
    scene.goes_on(&mut session).await
}

async fn nested_transactions_are_savepoints<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::Nested("nested")).await?;
    scene.act(&mut session, Act::NestedUndone("undone")).await?;
    scene.expect_effects(&[]).await?;
    session.rollback().await?;
    scene.expect_effects(&[]).await?;
    session.begin().await?;
    session.claim(&scene.consumer, &one.refs()).await?;
    session.savepoint().await?;
    scene.act(&mut session, Act::Nested("nested")).await?;
    scene.act(&mut session, Act::NestedUndone("undone")).await?;
    session.release().await?;
    scene.finish(&mut session, &one).await?;
    scene.expect_effects(&["nested"]).await
}

async fn an_unclaimed_id_can_be_claimed_again<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let (both, kept) = (ids(&["1", "2"])?, ids(&["1"])?);
    let mut session = scene.claimed(&both).await?;
    session.unclaim(&scene.consumer, &ids(&["2"])?.refs()).await?;
    scene.finish(&mut session, &kept).await?;
    scene.expect_claims(&kept).await?;
    session.begin().await?;
    let answers = session.claim(&scene.consumer, &both.refs()).await?;
    ensure!(answers == [false, true], "answers are {answers:?}");
    Ok(session.rollback().await?)
}

/// Giving up what was handled earlier would forget it.
async fn only_own_claims_can_be_given_up<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &one).await?;
    session.begin().await?;
    session.claim(&scene.consumer, &ids(&["1", "2"])?.refs()).await?;
    expect_fault(
        "giving up an earlier claim",
        session.unclaim(&scene.consumer, &one.refs()).await,
        Fault::Aborted,
    )?;
    session.rollback().await?;
    scene.expect_claims(&one).await
}

async fn one_session_serves_many_transactions<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    for number in 0..50 {
        let one = ids(&[format!("{number:02}")])?;
        if number % 3 == 0 {
            session.begin().await?;
            session.claim(&scene.consumer, &one.refs()).await?;
            session.rollback().await?;
        }
        let handled = scene.handle(&mut session, &one).await?;
        ensure!(handled.new == 1, "message {number} was taken for a duplicate");
        session.record_failure(&scene.consumer, &one.0[0], "between transactions").await?;
    }
    ensure!(scene.stage.effects().await?.len() == 50, "not every transaction left its effect");
    scene.until_none_is_open().await
}
