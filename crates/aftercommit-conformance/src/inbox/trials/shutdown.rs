//! How a consumer ends, and what it says about itself until then.

use std::time::Duration;

use aftercommit_inbox::{ConsumerError, InboxStore, Outcome};

use crate::faults::{Fault, Script, Seam, Side};
use crate::inbox::probe::Step;
use crate::inbox::scene::{Done, Scene, ensure, id, ids, message, until};

super::cases! { "shutdown":
    in_the_middle_of_a_stream_nothing_is_lost,
    what_is_open_is_finished,
    while_the_database_is_away_it_ends_in_time,
    while_a_failing_message_waits_it_ends_in_time,
    a_broker_that_does_not_answer_does_not_hold_it_up,
    dropping_it_is_a_shutdown,
    running_until_something_is_a_shutdown,
    health_tells_the_truth,
    a_second_start_goes_on_where_the_first_ended,
}

async fn in_the_middle_of_a_stream_nothing_is_lost<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(2)));
    scene.send_ids(0..200).await?;
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(5))).await?;
    scene.until_effects(30).await?;
    scene.stop(player).await?;
    let effects = scene.ledger.effects().await?.len();
    ensure!(effects < 200, "it did not end in the middle");
    // What was applied is settled, what was not started has gone back.
    scene.until_total(u64::try_from(200 - effects)?).await?;
    let second = scene.start(scene.consumer(&probe).await?).await?;
    scene.until_empty().await?;
    second.counted(Outcome::Duplicate, 0)?;
    scene.stop(second).await?;
    ensure!(scene.ledger.failures().await? == 0, "a shutdown cost attempts");
    scene.each_once(ids(0..200)).await?;
    scene.no_letters().await
}

async fn what_is_open_is_finished<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(700)));
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send(message(&id(1))).await?;
    scene.within("the handler runs", until(|| !probe.calls().is_empty())).await?;
    scene.stop(player).await?;
    scene.each_once(ids(1..2)).await?;
    scene.until_empty().await
}

async fn while_the_database_is_away_it_ends_in_time<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    player.outage.begin();
    scene.send_ids(0..10).await?;
    scene.until_complaint(&player, "database").await?;
    player.running.shut_down();
    let ended = tokio::time::timeout(Duration::from_secs(5), player.running.ended()).await;
    ended.map_err(|_| "it did not end")??;
    scene.until_total(10).await?;
    let second = scene.start(scene.consumer(&probe).await?).await?;
    scene.until_empty().await?;
    scene.stop(second).await?;
    ensure!(scene.ledger.failures().await? == 0, "a shutdown cost attempts");
    scene.each_once(ids(0..10)).await
}

async fn while_a_failing_message_waits_it_ends_in_time<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.nth == 1 { Step::Fail } else { Step::Apply });
    let policy = aftercommit_core::RetryPolicy::new([Duration::from_secs(60)])?;
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.retry(policy).max_batch(1));
    let player = scene.start(cast).await?;
    scene.send(message(&id(1))).await?;
    scene.within("it failed", until(|| player.tally.outcome(Outcome::Retried) == 1)).await?;
    player.running.shut_down();
    let ended = tokio::time::timeout(Duration::from_secs(5), player.running.ended()).await;
    ended.map_err(|_| "it did not end")??;
    scene.until_total(1).await?;
    scene.each_once(ids(0..0)).await
}

/// Neither what is given back nor the end of the subscription is answered.
async fn a_broker_that_does_not_answer_does_not_hold_it_up<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(50)));
    let script = Script::record().at(Seam::GiveBack, Side::Before, 0, Fault::Delay).at(
        Seam::Close,
        Side::Before,
        0,
        Fault::Delay,
    );
    let cast = scene
        .consumer(&probe)
        .await?
        .set(|consumer| consumer.lanes(1).max_batch(1).shutdown_within(Duration::from_millis(500)));
    scene.send_ids(0..50).await?;
    let player = scene.start_scripted(cast, &script).await?;
    scene.until_effects(1).await?;
    player.running.shut_down();
    let ended = tokio::time::timeout(Duration::from_secs(5), player.running.ended()).await;
    match ended.map_err(|_| "it waits for the broker for good")? {
        Err(ConsumerError::ShutdownTimedOut(_)) => Ok(()),
        other => Err(format!("it ended with {other:?}").into()),
    }
}

async fn dropping_it_is_a_shutdown<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(2)));
    scene.send_ids(0..100).await?;
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(5))).await?;
    scene.until_effects(10).await?;
    let health = player.health.clone();
    drop(player);
    scene.within("it has ended", until(|| !health.is_alive())).await?;
    let effects = scene.ledger.effects().await?.len();
    scene.until_total(u64::try_from(100 - effects)?).await?;
    let second = scene.start(scene.consumer(&probe).await?).await?;
    scene.until_empty().await?;
    scene.stop(second).await?;
    scene.each_once(ids(0..100)).await
}

async fn running_until_something_is_a_shutdown<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let cast = scene.consumer(&probe).await?;
    scene.send_ids(0..10).await?;
    let broker = scene.stage.connect().await?;
    let (end, wait) = tokio::sync::oneshot::channel::<()>();
    let run = cast.consumer.run(broker, scene.subscription.clone(), async {
        let _ = wait.await;
    });
    let watch = async {
        scene.until_empty().await?;
        let _ = end.send(());
        Ok::<_, aftercommit_core::BoxError>(())
    };
    let (ran, watched) = scene.within("it runs and ends", futures_util::future::join(run, watch)).await?;
    watched?;
    ran?;
    scene.each_once(ids(0..10)).await
}

async fn health_tells_the_truth<S: InboxStore>(scene: Scene<S>) -> Done {
    let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let slow = std::sync::Arc::clone(&permits);
    let probe = scene.probe(move |_| Step::Wait(std::sync::Arc::clone(&slow)));
    let cast = scene
        .consumer(&probe)
        .await?
        .set(|consumer| consumer.deadline(None).stuck_after(Duration::from_millis(300)));
    let player = scene.start(cast).await?;
    let health = player.health.clone();
    ensure!(health.is_ready() && health.is_alive(), "{:?}", health.not_ready());
    scene.send(message(&id(1))).await?;
    scene.within("the lane is stuck", until(|| !health.is_alive())).await?;
    ensure!(health.not_alive()[0].part == "lane", "{:?}", health.not_alive());
    ensure!(!health.is_ready(), "ready with a stuck lane");
    permits.add_permits(1);
    scene.until_ready(&player).await?;
    permits.add_permits(100);
    player.outage.begin();
    scene.send(message(&id(2))).await?;
    scene.until_complaint(&player, "database").await?;
    tokio::time::sleep(Duration::from_millis(400)).await;
    ensure!(health.is_alive(), "{:?}", health.not_alive());
    player.outage.end();
    scene.until_ready(&player).await?;
    scene.until_empty().await?;
    player.running.shut_down();
    ensure!(!health.is_ready(), "ready while it shuts down");
    scene.within("the end", player.running.ended()).await??;
    ensure!(health.not_alive().first().is_some_and(|it| it.part == "consumer"), "{:?}", health.not_alive());
    Ok(())
}

async fn a_second_start_goes_on_where_the_first_ended<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    for round in 0..4 {
        let player = scene.start(scene.consumer(&probe).await?).await?;
        scene.send_ids(round * 10..round * 10 + 10).await?;
        scene.send_ids(0..round * 10).await?;
        scene.until_empty().await?;
        player.counted(Outcome::Applied, 10)?;
        player.counted(Outcome::Duplicate, u64::try_from(round * 10)?)?;
        scene.stop(player).await?;
    }
    scene.each_once(ids(0..40)).await
}
