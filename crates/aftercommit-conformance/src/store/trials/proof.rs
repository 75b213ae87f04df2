//! The last statement: whatever a handler did to the transaction, what is committed was proved.

use std::sync::Arc;

use aftercommit_inbox::{Fault, InboxStore, Session};

use super::cases;
use crate::store::scene::{CONSUMER, Done, Ids, Scene, ensure, expect_fault, fault, ids, numbers};
use crate::store::stage::{Act, StoreStage};

cases! { "proof":
    what_is_held_is_proved,
    no_claims_are_proved_too,
    a_swallowed_error_is_found [FailedTransactions],
    a_swallowed_error_is_found_at_the_savepoint [FailedTransactions],
    a_handlers_rollback_is_found,
    a_handlers_commit_is_found,
    a_handlers_commit_and_begin_is_found,
    a_statement_that_ends_the_transaction_is_found [EndInStatement],
    nothing_passes_but_the_stores_commit [GuardedCommit],
    a_deleted_claim_is_found,
    what_was_not_claimed_is_not_proved,
    what_was_handled_earlier_is_not_proved,
    a_forgotten_claim_is_found,
    a_commit_needs_the_proof,
    an_unsafe_transaction_is_found [UnsafeTransactions],
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn what_is_held_is_proved<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let ids = numbers(100)?;
    let mut session = scene.claimed(&ids).await?;
    session.prove(&scene.consumer, &ids.refs()).await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    scene.finish(&mut session, &ids).await?;
    scene.expect_claims(&ids).await
}

async fn no_claims_are_proved_too<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let (one, none) = (ids(&["1"])?, Ids(Vec::new()));
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &one).await?;
    let again = scene.handle(&mut session, &one).await?;
    ensure!(again.new == 0, "a handled id was claimed again");
    session.begin().await?;
    scene.finish(&mut session, &none).await?;
    session.begin().await?;
    // What follows is outside the transaction.
    let _ = scene.act(&mut session, Act::Rollback).await;
    expect_fault(
        "the proof of a transaction without claims",
        session.prove(&scene.consumer, &[]).await,
        Fault::Aborted,
    )?;
    session.discard();
    scene.expect_claims(&one).await
}

/// PostgreSQL answers COMMIT of a failed transaction with ROLLBACK, and drivers call that success.
async fn a_swallowed_error_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    ensure!(scene.act(&mut session, Act::Fail).await.is_err(), "a statement that must fail did not");
    expect_fault("the proof", session.prove(&scene.consumer, &one.refs()).await, Fault::Aborted)?;
    session.rollback().await?;
    scene.expect_effects(&[]).await?;
    scene.goes_on(&mut session).await
}

async fn a_swallowed_error_is_found_at_the_savepoint<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.claimed(&ids(&["1", "2"])?).await?;
    session.savepoint().await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    ensure!(scene.act(&mut session, Act::Fail).await.is_err(), "a statement that must fail did not");
    expect_fault("the release", session.release().await, Fault::Aborted)?;
    session.rollback_to().await?;
    session.unclaim(&scene.consumer, &ids(&["1"])?.refs()).await?;
    session.savepoint().await?;
    scene.act(&mut session, Act::Effect("2")).await?;
    session.release().await?;
    let kept = ids(&["2"])?;
    scene.finish(&mut session, &kept).await?;
    scene.expect_effects(&["2"]).await?;
    scene.expect_claims(&kept).await
}

async fn a_handlers_rollback_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    ended_by(stage, Act::Rollback).await
}

async fn a_handlers_commit_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    ended_by(stage, Act::Commit).await
}

async fn a_handlers_commit_and_begin_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    ended_by(stage, Act::CommitAndBegin).await
}

async fn a_statement_that_ends_the_transaction_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    ended_by(stage, Act::EndInStatement).await
}

/// The transaction that made the claims is over: no proof, and the connection serves nobody else.
async fn ended_by<S: InboxStore>(stage: Stage<S>, end: Act<'_>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    let _ = scene.act(&mut session, end).await;
    expect_fault("the proof", session.prove(&scene.consumer, &one.refs()).await, Fault::Aborted)?;
    ensure!(session.rollback().await.is_err(), "a session whose transaction was ended by a handler goes on");
    session.discard();
    scene.until_none_is_open().await?;
    let mut session = scene.store.open().await?;
    scene.goes_on(&mut session).await
}

/// Whatever a handler writes after it ended the transaction goes with the message.
async fn nothing_passes_but_the_stores_commit<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    for end in [Act::Rollback, Act::Commit, Act::CommitAndBegin, Act::EndInStatement] {
        let mut session = scene.within("the next claim", scene.claimed(&one)).await??;
        scene.act(&mut session, Act::Effect("before")).await?;
        let _ = scene.act(&mut session, end).await;
        let _ = scene.act(&mut session, Act::Effect("behind")).await;
        let _ = scene.act(&mut session, Act::Nested("nested")).await;
        let _ = scene.act(&mut session, Act::Commit).await;
        let proof = fault(session.prove(&scene.consumer, &one.refs()).await)?;
        ensure!(proof == Fault::Aborted, "after {end:?} the proof failed as {proof:?}");
        session.discard();
        scene.until_none_is_open().await?;
        let found = scene.stage.effects().await?;
        ensure!(found.is_empty(), "after {end:?} there is {found:?}");
        scene.expect_claims(&Ids(Vec::new())).await?;
    }
    Ok(())
}

async fn a_deleted_claim_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let three = ids(&["1", "2", "3"])?;
    let mut session = scene.claimed(&three).await?;
    scene.act(&mut session, Act::DeleteClaim { consumer: CONSUMER, id: "2" }).await?;
    expect_fault("the proof", session.prove(&scene.consumer, &three.refs()).await, Fault::Aborted)?;
    session.rollback().await?;
    scene.expect_claims(&Ids(Vec::new())).await
}

async fn what_was_not_claimed_is_not_proved<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.claimed(&ids(&["1"])?).await?;
    let proof = session.prove(&scene.consumer, &ids(&["1", "2"])?.refs()).await;
    expect_fault("the proof of more than was claimed", proof, Fault::Aborted)?;
    session.rollback().await?;
    scene.expect_claims(&Ids(Vec::new())).await
}

async fn what_was_handled_earlier_is_not_proved<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &one).await?;
    session.begin().await?;
    session.claim(&scene.consumer, &one.refs()).await?;
    let proof = session.prove(&scene.consumer, &one.refs()).await;
    expect_fault("the proof of an earlier claim", proof, Fault::Aborted)?;
    session.rollback().await?;
    scene.expect_claims(&one).await
}

/// A claim that is committed and was not handled swallows the message.
async fn a_forgotten_claim_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.claimed(&ids(&["1", "2"])?).await?;
    let proof = session.prove(&scene.consumer, &ids(&["1"])?.refs()).await;
    expect_fault("the proof of less than was claimed", proof, Fault::Aborted)?;
    session.rollback().await?;
    scene.expect_claims(&Ids(Vec::new())).await
}

async fn a_commit_needs_the_proof<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    ensure!(session.commit().await.is_err(), "a commit without proof succeeded");
    session.rollback().await?;
    session.begin().await?;
    session.claim(&scene.consumer, &one.refs()).await?;
    session.prove(&scene.consumer, &one.refs()).await?;
    scene.act(&mut session, Act::Effect("late")).await?;
    ensure!(session.commit().await.is_err(), "a commit succeeded though the handler wrote after the proof");
    session.rollback().await?;
    scene.expect_effects(&[]).await?;
    scene.expect_claims(&Ids(Vec::new())).await
}

async fn an_unsafe_transaction_is_found<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::UnsafeCommit).await?;
    expect_fault("the proof", session.prove(&scene.consumer, &one.refs()).await, Fault::Aborted)?;
    session.rollback().await?;
    scene.goes_on(&mut session).await
}
