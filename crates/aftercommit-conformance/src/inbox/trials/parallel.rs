//! Several lanes, instances and consumers at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use aftercommit_inbox::{InboxStore, Outcome, metric};

use crate::faults::{Fault, Script, Seam, Side};
use crate::inbox::probe::Step;
use crate::inbox::scene::{Done, Player, Scene, ensure, id, ids, message, pause};

super::cases! { "parallel":
    two_instances_share_one_identity [SharedSource],
    h04_two_consumers_of_one_event_each_apply_it_once [Copies],
    h05_a_claim_waits_for_the_one_before_it [SharedSource],
    h05_a_waiting_claim_runs_when_the_one_before_it_failed [SharedSource],
    the_same_ids_in_opposite_orders_do_not_deadlock [SharedSource],
    messages_of_a_key_keep_their_order [Order],
    h16_handlers_never_exceed_the_lanes & parallel,
    h23_a_slow_message_holds_up_no_other & parallel,
    h23_settling_out_of_order_returns_only_the_open_one [Cut],
}

async fn two_instances_share_one_identity<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let one = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(5))).await?;
    let other = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(5))).await?;
    for number in 0..100 {
        scene.send(message(&id(number))).await?;
        scene.send(message(&id(number))).await?;
    }
    scene.until_empty().await?;
    let sum = |outcome| one.tally.outcome(outcome) + other.tally.outcome(outcome);
    let (applied, duplicates) = (sum(Outcome::Applied), sum(Outcome::Duplicate));
    ensure!((applied, duplicates) == (100, 100), "{applied} applied, {duplicates} duplicates");
    scene.stop(one).await?;
    scene.stop(other).await?;
    scene.each_once(ids(0..100)).await
}

async fn h04_two_consumers_of_one_event_each_apply_it_once<S: InboxStore>(scene: Scene<S>) -> Done {
    let names = ["billing", "mailer"];
    let mut players = Vec::new();
    for name in names {
        let subscription = scene.stage.subscription(name, super::TOPIC)?;
        scene.broker.declare(&subscription).await?;
        let cast = scene.consumer(&scene.probe_of(name, |_| Step::Apply)).await?;
        players.push(scene.start_on(cast, scene.stage.connect().await?, subscription).await?);
    }
    scene.send(message(&id(1))).await?;
    scene.until_effects(2).await?;
    scene.send(message(&id(1))).await?;
    for player in &players {
        let known = async {
            while player.tally.outcome(Outcome::Duplicate) < 1 {
                pause().await;
            }
        };
        scene.within("a duplicate", known).await?;
    }
    for player in players {
        player.counted(Outcome::Applied, 1)?;
        scene.stop(player).await?;
    }
    for name in names {
        scene.each_once_of(name, ids(1..2)).await?;
    }
    Ok(())
}

/// Two instances that each take one message at a time.
async fn pair<S: InboxStore>(
    scene: &Scene<S>,
    probe: &Arc<crate::inbox::probe::Probe<S>>,
) -> Result<[Player; 2], aftercommit_core::BoxError> {
    let subscription = scene.subscription.clone().with_prefetch(1)?;
    let mut players = Vec::new();
    for _ in 0..2 {
        let cast = scene.consumer(probe).await?.set(|consumer| consumer.lanes(1).max_batch(1));
        players.push(scene.start_on(cast, scene.stage.connect().await?, subscription.clone()).await?);
    }
    players.try_into().map_err(|_| "two were started".into())
}

async fn h05_a_claim_waits_for_the_one_before_it<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(300)));
    let [one, other] = pair(&scene, &probe).await?;
    scene.send(message(&id(1))).await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    let sum = |outcome| one.tally.outcome(outcome) + other.tally.outcome(outcome);
    let (applied, duplicates, retried) =
        (sum(Outcome::Applied), sum(Outcome::Duplicate), sum(Outcome::Retried));
    ensure!((applied, duplicates, retried) == (1, 2, 0), "{applied}, {duplicates}, {retried}");
    scene.stop(one).await?;
    scene.stop(other).await?;
    ensure!(scene.ledger.failures().await? == 0, "a duplicate cost an attempt");
    scene.each_once(ids(1..2)).await
}

async fn h05_a_waiting_claim_runs_when_the_one_before_it_failed<S: InboxStore>(scene: Scene<S>) -> Done {
    let time = Duration::from_millis(300);
    let probe = scene.probe(move |call| if call.nth == 1 { Step::SlowFail(time) } else { Step::Apply });
    let [one, other] = pair(&scene, &probe).await?;
    scene.send(message(&id(1))).await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    let sum = |outcome| one.tally.outcome(outcome) + other.tally.outcome(outcome);
    let (applied, duplicates, retried) =
        (sum(Outcome::Applied), sum(Outcome::Duplicate), sum(Outcome::Retried));
    ensure!((applied, duplicates, retried) == (1, 1, 1), "{applied}, {duplicates}, {retried}");
    scene.stop(one).await?;
    scene.stop(other).await?;
    scene.each_once(ids(1..2)).await?;
    scene.no_letters().await
}

async fn the_same_ids_in_opposite_orders_do_not_deadlock<S: InboxStore>(scene: Scene<S>) -> Done {
    const ROUNDS: usize = 8;
    let probe = scene.probe(|_| Step::Apply);
    let one = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(20))).await?;
    let other = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(20))).await?;
    for round in 0..ROUNDS {
        let range = round * 20..round * 20 + 20;
        let there = range.clone().chain(range.clone());
        let back = range.clone().rev().chain(range.rev());
        for number in there.chain(back) {
            scene.send(message(&id(number))).await?;
        }
    }
    scene.until_empty().await?;
    let conflicts: u64 =
        [&one, &other].iter().map(|player| player.tally.count(metric::FAULTS, "fault=conflict;")).sum();
    ensure!(conflicts == 0, "{conflicts} conflicts");
    let sum = |outcome| one.tally.outcome(outcome) + other.tally.outcome(outcome);
    let applied = sum(Outcome::Applied);
    ensure!(applied == 20 * u64::try_from(ROUNDS)?, "{applied} applied");
    scene.stop(one).await?;
    scene.stop(other).await?;
    scene.each_once(ids(0..20 * ROUNDS)).await
}

async fn messages_of_a_key_keep_their_order<S: InboxStore>(scene: Scene<S>) -> Done {
    const KEYS: usize = 7;
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(3))).await?;
    for number in 0..210 {
        let keyed = message(&id(number)).with_key(format!("key-{}", number % KEYS));
        // Some without a key among them.
        let sent = if number % 10 == 9 { message(&id(number)) } else { keyed };
        scene.send(sent).await?;
    }
    scene.until_empty().await?;
    scene.stop(player).await?;
    let mut last: HashMap<String, String> = HashMap::new();
    for call in probe.calls() {
        let Some(key) = call.key else { continue };
        let before = last.insert(key.clone(), call.id.clone());
        ensure!(before.as_ref() < Some(&call.id), "{} after {before:?} of {key}", call.id);
    }
    let keys = if scene.stage.expected(&message("k").with_key("k")).key.is_some() { KEYS } else { 0 };
    ensure!(last.len() == keys, "{} keys arrived", last.len());
    scene.each_once(ids(0..210)).await
}

async fn h16_handlers_never_exceed_the_lanes<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Slow(Duration::from_millis(5)));
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.lanes(3).max_batch(4));
    scene.send_ids(0..150).await?;
    let player =
        scene.start_on(cast, scene.stage.connect().await?, scene.subscription.clone().with_prefetch(24)?);
    let player = player.await?;
    let mut most_out = 0;
    while scene.depth().await?.total() > 0 {
        most_out = most_out.max(scene.depth().await?.unsettled);
        pause().await;
    }
    scene.stop(player).await?;
    ensure!(probe.most_busy() <= 3, "{} handlers at once on 3 lanes", probe.most_busy());
    ensure!(probe.most_busy() > 1, "the lanes never worked side by side");
    ensure!(most_out <= 24, "{most_out} deliveries out with a prefetch of 24");
    scene.each_once(ids(0..150)).await
}

async fn h23_a_slow_message_holds_up_no_other<S: InboxStore>(scene: Scene<S>) -> Done {
    let permits = Arc::new(Semaphore::new(0));
    let slow = Arc::clone(&permits);
    let probe =
        scene.probe(move |call| if call.id == id(5) { Step::Wait(Arc::clone(&slow)) } else { Step::Apply });
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.lanes(2).max_batch(1));
    let player = scene.start(cast).await?;
    scene.send_ids(0..30).await?;
    scene.until_total(1).await?;
    player.counted(Outcome::Applied, 29)?;
    permits.add_permits(1);
    scene.until_empty().await?;
    scene.stop(player).await?;
    scene.each_once(ids(0..30)).await
}

/// The fifth settlement does not get through; its neighbours do, before and after it.
async fn h23_settling_out_of_order_returns_only_the_open_one<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let script = Script::record().at(Seam::Ack, Side::Before, 5, Fault::Delay);
    let player = scene.start_scripted(scene.consumer(&probe).await?, &script).await?;
    scene.send_ids(0..20).await?;
    scene.within("the fifth settlement", script.delayed()).await?;
    scene.until_total(1).await?;
    scene.stage.cut().await?;
    script.release();
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 20)?;
    player.counted(Outcome::Duplicate, 1)?;
    scene.stop(player).await?;
    scene.each_once(ids(0..20)).await
}
