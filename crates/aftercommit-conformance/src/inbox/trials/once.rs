//! One effect per id, however often and wherever it is delivered.

use aftercommit_core::Message;
use aftercommit_inbox::{InboxStore, Outcome};

use crate::inbox::probe::Step;
use crate::inbox::scene::{Done, Scene, ensure, id, ids, message};

super::cases! { "once":
    applied_once_and_confirmed,
    delivered_three_times_applied_once,
    the_same_id_twice_in_one_batch,
    a_rejection_is_committed_and_confirmed,
    a_failure_comes_again_and_is_applied_once,
}

async fn applied_once_and_confirmed<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send_ids(0..25).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 25)?;
    scene.stop(player).await?;
    scene.each_once(ids(0..25)).await?;
    let handled = scene.ledger.handled().await?;
    ensure!(handled.len() == 25, "{} rows in the inbox for 25 messages", handled.len());
    scene.no_letters().await
}

async fn delivered_three_times_applied_once<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    for _ in 0..3 {
        scene.send(message(&id(1))).await?;
        scene.until_empty().await?;
    }
    player.counted(Outcome::Applied, 1)?;
    player.counted(Outcome::Duplicate, 2)?;
    scene.stop(player).await?;
    ensure!(probe.calls_of(&id(1)) == 1, "the handler was called {} times", probe.calls_of(&id(1)));
    scene.each_once(ids(1..2)).await
}

/// The first of them counts.
async fn the_same_id_twice_in_one_batch<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    for number in 0..20 {
        scene.send(message(&id(number))).await?;
        if number == 3 || number == 17 {
            let twin = Message::new(format!("twin at {number}")).with_id("twin");
            scene.send(twin).await?;
        }
    }
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.lanes(1))).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 21)?;
    player.counted(Outcome::Duplicate, 1)?;
    scene.stop(player).await?;
    scene.each_once(ids(0..20).into_iter().chain(["twin".to_owned()])).await?;
    let effects = scene.ledger.effects().await?;
    ensure!(effects.iter().any(|effect| effect.note == "twin at 3"), "the second twin had the effect");
    Ok(())
}

async fn a_rejection_is_committed_and_confirmed<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Reject);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send_ids(0..3).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Rejected, 3)?;
    scene.stop(player).await?;
    scene.each_once(ids(0..3)).await?;
    scene.no_letters().await
}

async fn a_failure_comes_again_and_is_applied_once<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.nth < 3 { Step::Fail } else { Step::Apply });
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(1))).await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 1)?;
    player.counted(Outcome::Retried, 2)?;
    scene.stop(player).await?;
    let calls = probe.calls();
    ensure!(calls.len() == 3, "{} calls", calls.len());
    for (pair, delay) in calls.windows(2).zip(crate::inbox::scene::DELAYS) {
        let waited = pair[1].at.saturating_sub(pair[0].at);
        ensure!(waited >= delay.mul_f64(0.9), "came again after {waited:?}, not {delay:?}");
    }
    scene.each_once(ids(1..2)).await?;
    scene.no_letters().await
}
