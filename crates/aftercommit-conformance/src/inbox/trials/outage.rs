//! Brokers and databases that go away, and answers that get lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use aftercommit_core::Message;
use aftercommit_inbox::{Consumer, InboxStore, Outcome, metric};

use crate::broker::Part;
use crate::faults::{Fault, Script, Seam, Side};
use crate::inbox::probe::{Single, Step};
use crate::inbox::scene::{Done, Scene, ensure, id, ids, message, until};

super::cases! { "outage":
    connections_cut_in_the_middle_of_a_stream [Cut],
    h18_a_stale_acker_sends_nothing_and_the_message_comes_again [Cut],
    h18_the_quick_ones_go_on_beside_a_slow_one [Cut] & parallel,
    what_is_lost_between_two_rounds_is_neither_judged_nor_retried [Cut],
    the_broker_goes_away_and_comes_back [Outage],
    h26_a_database_away_pauses_and_cycles_nothing,
    a_database_away_in_the_middle_of_a_stream,
    a_lost_answer_to_commit_costs_nothing,
    a_commit_that_was_not_made_runs_again,
    a_lost_claim_or_proof_runs_again,
    a_lost_settlement_makes_a_duplicate [Cut],
    a_missing_dead_letter_destination_keeps_the_original [RemovedDeadLetter],
    h16_a_publish_without_an_answer_ends_and_is_made_again [Stall],
}

async fn connections_cut_in_the_middle_of_a_stream<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(1)));
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(5))).await?;
    for number in 0..150 {
        scene.send_surely(message(&id(number))).await?;
        if number % 40 == 25 {
            scene.stage.cut().await?;
        }
    }
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 150)?;
    player.counted(Outcome::Retried, 0)?;
    scene.stop(player).await?;
    scene.each_once(ids(0..150)).await?;
    scene.no_letters().await
}

async fn h18_a_stale_acker_sends_nothing_and_the_message_comes_again<S: InboxStore>(scene: Scene<S>) -> Done {
    let permits = Arc::new(Semaphore::new(0));
    let slow = Arc::clone(&permits);
    let probe = scene.probe(move |_| Step::Wait(Arc::clone(&slow)));
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.lanes(1).max_batch(1));
    let player = scene.start(cast).await?;
    scene.send(message(&id(1))).await?;
    scene.within("the handler runs", until(|| !probe.calls().is_empty())).await?;
    scene.stage.cut().await?;
    scene.until_ready(&player).await?;
    permits.add_permits(1);
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 1)?;
    player.counted(Outcome::Duplicate, 1)?;
    let lost = player.tally.count(metric::SETTLED, "result=lost;");
    ensure!(lost == 1, "{lost} settlements were lost, not 1");
    scene.stop(player).await?;
    scene.each_once(ids(1..2)).await
}

/// With one lane beside the slow one's: a redelivery that waited there for the claim of the first would stop it.
async fn h18_the_quick_ones_go_on_beside_a_slow_one<S: InboxStore>(scene: Scene<S>) -> Done {
    let permits = Arc::new(Semaphore::new(0));
    let slow = Arc::clone(&permits);
    let probe =
        scene.probe(move |call| if call.id == "slow" { Step::Wait(Arc::clone(&slow)) } else { Step::Apply });
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.lanes(2).max_batch(5));
    let player = scene.start(cast).await?;
    scene.send(message("slow")).await?;
    scene.within("the handler runs", until(|| !probe.calls().is_empty())).await?;
    for round in 1..4 {
        for number in (round - 1) * 10..round * 10 {
            scene.send_surely(message(&id(number))).await?;
        }
        scene.until_effects(round * 10).await?;
        scene.stage.cut().await?;
    }
    scene.until_ready(&player).await?;
    permits.add_permits(1);
    scene.until_empty().await?;
    scene.stop(player).await?;
    let calls = probe.calls().iter().filter(|call| call.id == "slow").count();
    ensure!(calls == 1, "the slow one was handled {calls} times");
    scene.each_once(ids(0..30).into_iter().chain(["slow".to_owned()])).await
}

/// A batch fails when it is no longer ours: whatever its handler said, the broker hands it out anew.
async fn what_is_lost_between_two_rounds_is_neither_judged_nor_retried<S: InboxStore>(
    scene: Scene<S>,
) -> Done {
    let permits = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&permits);
    let probe = scene.probe(move |call| match (call.id == id(0), call.nth) {
        (true, 1) => Step::WaitInvariant(Arc::clone(&waits)),
        _ => Step::Apply,
    });
    let one_batch = |consumer: Consumer<_>| consumer.lanes(1).max_batch(2).max_wait(Duration::from_secs(30));
    let player = scene.start(scene.consumer(&probe).await?.set(one_batch)).await?;
    scene.send_ids(0..2).await?;
    scene.within("the handler runs", until(|| !probe.calls().is_empty())).await?;
    scene.stage.cut().await?;
    let again = || player.tally.count(metric::REDELIVERED, "") == 2;
    scene.within("both come again", until(again)).await?;
    permits.add_permits(1);
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 2)?;
    player.counted(Outcome::Retried, 0)?;
    let lost = player.tally.count(metric::LOST, "");
    ensure!(lost == 2, "{lost} deliveries were counted as lost, not 2");
    scene.stop(player).await?;
    scene.each_once(ids(0..2)).await?;
    scene.no_letters().await
}

async fn the_broker_goes_away_and_comes_back<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send_ids(0..20).await?;
    scene.stage.take_down().await?;
    scene.until_complaint(&player, "source").await?;
    ensure!(player.health.is_alive(), "an outage is no reason for a restart");
    scene.stage.bring_up().await?;
    scene.until_ready(&player).await?;
    for number in 20..40 {
        scene.send_surely(message(&id(number))).await?;
    }
    scene.until_empty().await?;
    player.counted(Outcome::Retried, 0)?;
    scene.stop(player).await?;
    scene.each_once(ids(0..40)).await
}

async fn h26_a_database_away_pauses_and_cycles_nothing<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.lanes(1).max_batch(5));
    let subscription = scene.subscription.clone().with_prefetch(10)?;
    let player = scene.start_on(cast, scene.stage.connect().await?, subscription).await?;
    player.outage.begin();
    scene.send_ids(0..40).await?;
    scene.until_complaint(&player, "database").await?;
    tokio::time::sleep(scene.stage.quiet() * 2).await;
    let reasons = player.health.not_ready();
    ensure!(reasons.iter().any(|it| it.reason.contains("the database is away")), "{reasons:?}");
    ensure!(player.health.is_alive(), "an outage is no reason for a restart");
    let depth = scene.depth().await?;
    ensure!(depth.total() == 40 && depth.unsettled <= 10, "during the outage: {depth:?}");
    ensure!(probe.calls().is_empty(), "the handler was called");
    player.outage.end();
    scene.until_empty().await?;
    scene.until_ready(&player).await?;
    player.counted(Outcome::Applied, 40)?;
    player.counted(Outcome::Retried, 0)?;
    let redelivered = player.tally.count(metric::REDELIVERED, "");
    ensure!(redelivered == 0, "{redelivered} deliveries went round");
    ensure!(player.tally.count(metric::PAUSES, "") > 0, "no pause was counted");
    scene.stop(player).await?;
    ensure!(scene.ledger.failures().await? == 0, "attempts were spent");
    scene.each_once(ids(0..40)).await
}

async fn a_database_away_in_the_middle_of_a_stream<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| match call.id == "bad" {
        true => Step::Fail,
        false => Step::Slow(Duration::from_millis(1)),
    });
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(5))).await?;
    scene.send(message("bad")).await?;
    for number in 0..120 {
        scene.send(message(&id(number))).await?;
        match number % 30 {
            10 => player.outage.begin(),
            20 => {
                scene.until_complaint(&player, "database").await?;
                player.outage.end();
            }
            _ => {}
        }
    }
    scene.until_empty().await?;
    player.counted(Outcome::Parked, 1)?;
    scene.stop(player).await?;
    let letter = scene.letters(1).await?.remove(0);
    ensure!(letter.id.as_deref() == Some(b"bad"), "parked was {:?}", letter.id);
    scene.each_once(ids(0..120)).await
}

async fn a_lost_answer_to_commit_costs_nothing<S: InboxStore>(scene: Scene<S>) -> Done {
    let script = Script::record().at(Seam::Commit, Side::After, 0, Fault::LoseAnswer);
    let calls = with_fault(scene, script).await?;
    ensure!(calls == 1, "the handler ran {calls} times although its transaction was committed");
    Ok(())
}

async fn a_commit_that_was_not_made_runs_again<S: InboxStore>(scene: Scene<S>) -> Done {
    let script = Script::record().at(Seam::Commit, Side::Before, 0, Fault::Fail);
    let calls = with_fault(scene, script).await?;
    ensure!(calls == 2, "the handler ran {calls} times");
    Ok(())
}

async fn a_lost_claim_or_proof_runs_again<S: InboxStore>(scene: Scene<S>) -> Done {
    let script = Script::record()
        .at(Seam::Begin, Side::Before, 0, Fault::Fail)
        .at(Seam::Begin, Side::After, 1, Fault::LoseAnswer)
        .at(Seam::Claim, Side::After, 0, Fault::LoseAnswer)
        .at(Seam::LastStatement, Side::Before, 0, Fault::Fail)
        .at(Seam::LastStatement, Side::After, 1, Fault::LoseAnswer);
    with_fault(scene, script).await.map(drop)
}

/// One message through a database with a fault: applied, no attempt spent. Answers the calls.
async fn with_fault<S: InboxStore>(
    scene: Scene<S>,
    script: Script,
) -> Result<usize, aftercommit_core::BoxError> {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer_of(Single(Arc::clone(&probe)), &script).await?).await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 1)?;
    player.counted(Outcome::Retried, 0)?;
    scene.until_ready(&player).await?;
    scene.stop(player).await?;
    ensure!(scene.ledger.failures().await? == 0, "an attempt was spent");
    scene.each_once(ids(1..2)).await?;
    Ok(probe.calls_of(&id(1)))
}

async fn a_lost_settlement_makes_a_duplicate<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let script = Script::record().at(Seam::Ack, Side::Before, 0, Fault::Fail);
    let player = scene.start_scripted(scene.consumer(&probe).await?, &script).await?;
    scene.send(message(&id(1))).await?;
    scene.until_effects(1).await?;
    scene.send(message(&id(2))).await?;
    scene.until_total(1).await?;
    scene.stage.cut().await?;
    scene.until_empty().await?;
    player.counted(Outcome::Duplicate, 1)?;
    scene.stop(player).await?;
    scene.each_once(ids(1..3)).await
}

async fn a_missing_dead_letter_destination_keeps_the_original<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.stage.remove(Part::DeadLetter, &scene.subscription).await?;
    scene.until_complaint(&player, "topology").await?;
    scene.send(Message::new("poison").with_id("bad")).await?;
    scene.send_ids(0..20).await?;
    scene.until_complaint(&player, "dead letters").await?;
    scene.until_total(1).await?;
    scene.each_once(ids(0..20)).await?;
    scene.broker.declare(&scene.subscription).await?;
    scene.until_empty().await?;
    scene.until_ready(&player).await?;
    ensure!(player.tally.count(metric::NOT_PARKED, "") > 0, "no failed parking was counted");
    scene.stop(player).await?;
    scene.letters(1).await.map(drop)
}

/// Whatever else stands still while no answer comes.
async fn h16_a_publish_without_an_answer_ends_and_is_made_again<S: InboxStore>(scene: Scene<S>) -> Done {
    let permits = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&permits);
    let probe = scene.probe(move |call| match call.id == "bad" {
        true => Step::WaitInvariant(Arc::clone(&gate)),
        false => Step::Apply,
    });
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send(message("bad")).await?;
    scene.within("the handler runs", until(|| !probe.calls().is_empty())).await?;
    scene.stage.stall().await?;
    permits.add_permits(100);
    scene.until_complaint(&player, "dead letters").await?;
    ensure!(player.health.is_alive(), "{:?}", player.health.not_alive());
    scene.stage.go_on().await?;
    scene.until_empty().await?;
    scene.until_ready(&player).await?;
    for number in 0..20 {
        scene.send_surely(message(&id(number))).await?;
    }
    scene.until_empty().await?;
    scene.stop(player).await?;
    scene.each_once(ids(0..20)).await
}
