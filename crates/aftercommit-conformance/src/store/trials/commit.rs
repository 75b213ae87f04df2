//! What COMMIT answers, and what it does not.

use std::sync::Arc;

use aftercommit_inbox::{Fault, InboxStore, Session};

use super::cases;
use crate::store::scene::{Done, Ids, Scene, ensure, expect_fault, ids};
use crate::store::stage::{Act, Lost, StoreStage};

cases! { "commit":
    a_refusal_is_said_and_leaves_nothing [DeferredConstraints],
    a_lost_request_is_unknown_and_claimed_again [LostAnswers],
    a_lost_answer_is_unknown_and_a_duplicate [LostAnswers],
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn a_refusal_is_said_and_leaves_nothing<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.act(&mut session, Act::Effect("1")).await?;
    scene.act(&mut session, Act::RefuseAtCommit).await?;
    session.prove(&scene.consumer, &one.refs()).await?;
    expect_fault("the commit", session.commit().await, Fault::Refused)?;
    session.rollback().await?;
    scene.expect_effects(&[]).await?;
    scene.expect_claims(&Ids(Vec::new())).await?;
    scene.goes_on(&mut session).await
}

async fn a_lost_request_is_unknown_and_claimed_again<S: InboxStore>(stage: Stage<S>) -> Done {
    lost(stage, Lost::Request).await
}

async fn a_lost_answer_is_unknown_and_a_duplicate<S: InboxStore>(stage: Stage<S>) -> Done {
    lost(stage, Lost::Answer).await
}

/// Claiming again on a new connection says what became of it, and there is one effect either way.
async fn lost<S: InboxStore>(stage: Stage<S>, lost: Lost) -> Done {
    let scene = Scene::open(Arc::clone(&stage)).await?;
    let losing = Scene { store: stage.losing(lost).await?, stage, consumer: scene.consumer.clone() };
    let one = ids(&["1"])?;
    let mut session = losing.claimed(&one).await?;
    losing.act(&mut session, Act::Effect("1")).await?;
    session.prove(&losing.consumer, &one.refs()).await?;
    let answer = losing.within("an answer to the commit, or its end", session.commit()).await?;
    expect_fault("the commit", answer, Fault::Unknown)?;
    session.discard();
    let mut session = scene.store.open().await?;
    let again = scene.within("the claim again", scene.handle(&mut session, &one)).await??;
    let expected = usize::from(lost == Lost::Request);
    ensure!(again.new == expected, "after a lost {lost:?} the claim again found {} new", again.new);
    scene.expect_effects(&["1"]).await?;
    scene.until_none_is_open().await
}
