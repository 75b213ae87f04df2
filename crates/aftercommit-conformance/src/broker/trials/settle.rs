//! Settling: only this one, nothing by accident, the truth.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BoxError, Delivery, Message, Redelivered, Redelivery, SettleError, Settled, Source};

use super::cases;
use crate::broker::scene::{Scene, ack, body, ensure, numbers};
use crate::broker::stage::Stage;

cases! { "settle":
    acking_touches_no_neighbour,
    giving_back_touches_no_neighbour,
    dropping_settles_nothing,
    given_back_comes_at_once,
    giving_back_often_costs_nothing,
    given_back_for_later_comes_when_due,
    too_long_a_delay_is_refused,
    the_redelivered_hint_is_true,
    what_is_settled_never_comes_again [Cut],
    an_acker_is_lost_after_a_cut [Cut],
    an_acker_is_lost_after_a_close,
}

type Done = Result<(), BoxError>;

/// The bodies of what a new source hands out, unsettled.
async fn left(scene: &Scene, count: usize) -> Result<BTreeSet<String>, BoxError> {
    let mut source = scene.source().await?;
    let taken = scene.take(&mut source, count).await?;
    let bodies = taken.iter().map(body).collect();
    scene.nothing_comes(&mut source).await?;
    scene.close(source).await?;
    Ok(bodies)
}

fn pick(out: &mut Vec<Delivery>, wanted: &str) -> Result<Delivery, BoxError> {
    let at = out.iter().position(|delivery| body(delivery) == wanted);
    Ok(out.swap_remove(at.ok_or_else(|| format!("message {wanted} did not come"))?))
}

async fn acking_touches_no_neighbour(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..6).await?;
    let mut source = scene.source().await?;
    let mut out = scene.take(&mut source, 6).await?;
    for wanted in ["4", "1", "5"] {
        ack(pick(&mut out, wanted)?).await?;
    }
    scene.close_with(source, 3).await?;
    let left = left(&scene, 3).await?;
    ensure!(left == ["0", "2", "3"].map(str::to_owned).into(), "4, 1 and 5 were acked, {left:?} came again");
    Ok(())
}

async fn giving_back_touches_no_neighbour(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..6).await?;
    let mut source = scene.source().await?;
    let mut out = scene.take(&mut source, 6).await?;
    pick(&mut out, "3")?.give_back(Redelivery::Now).await?;
    let again = scene.take_one(&mut source).await?;
    ensure!(body(&again) == "3", "3 was given back, {} came", body(&again));
    scene.nothing_comes(&mut source).await?;
    for delivery in out.into_iter().chain([again]) {
        ensure!(!delivery.is_lost(), "a neighbour of what was given back is lost");
        ack(delivery).await?;
    }
    scene.close_with(source, 0).await
}

async fn dropping_settles_nothing(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..3).await?;
    let mut source = scene.source().await?;
    drop(scene.take(&mut source, 3).await?);
    scene.nothing_comes(&mut source).await?;
    scene.close_with(source, 3).await?;
    let left = left(&scene, 3).await?;
    ensure!(left.into_iter().eq(numbers(0..3)), "not every dropped message came again");
    Ok(())
}

async fn given_back_comes_at_once(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send(Message::new("once more").with_id("id")).await?;
    let mut source = scene.source().await?;
    for _ in 0..3 {
        scene.take_one(&mut source).await?.give_back(Redelivery::Now).await?;
    }
    let delivery = scene.take_one(&mut source).await?;
    ensure!(body(&delivery) == "once more", "{} came", body(&delivery));
    ensure!(delivery.message.id.as_deref() == Some(b"id"), "the id changed to {:?}", delivery.message.id);
    ack(delivery).await?;
    scene.nothing_comes(&mut source).await?;
    scene.close_with(source, 0).await
}

/// Where giving back spends a delivery limit of the broker, the message would vanish or be parked by
/// the broker after some of them.
async fn giving_back_often_costs_nothing(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..1).await?;
    let mut source = scene.source().await?;
    for _ in 0..50 {
        scene.take_one(&mut source).await?.give_back(Redelivery::Now).await?;
    }
    let delivery = scene.take_one(&mut source).await?;
    ack(delivery).await?;
    scene.close_with(source, 0).await?;
    let mut letters = scene.broker.dead_letters(&scene.subscription).await?;
    scene.nothing_comes(&mut letters).await
}

async fn given_back_for_later_comes_when_due(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let delay = scene.stage.delay();
    let mut source = scene.source().await?;
    scene.send_numbers(0..1).await?;
    let delivery = scene.take_one(&mut source).await?;
    let longest = source.capabilities().delay.longest();
    ensure!(delay <= longest, "the stage's delay of {delay:?} is longer than the product's {longest:?}");
    let start = scene.stage.now();
    delivery.give_back(Redelivery::After(delay)).await?;
    scene.send_numbers(1..2).await?;
    let other = scene.take_one(&mut source).await?;
    ensure!(body(&other) == "1", "{} came while 0 was waiting", body(&other));
    ack(other).await?;
    let again = due(&scene, &mut source, delay).await?;
    let waited = scene.stage.now().saturating_sub(start);
    ensure!(waited >= delay, "it came after {waited:?}, not before {delay:?} was asked for");
    ensure!(body(&again) == "0", "{} came", body(&again));
    ack(again).await?;
    scene.close_with(source, 0).await
}

/// Lets time pass in small steps until something comes.
async fn due(scene: &Scene, source: &mut Box<dyn Source>, delay: Duration) -> Result<Delivery, BoxError> {
    let step = delay / 10;
    let latest = scene.stage.now() + delay + scene.stage.patience();
    while scene.stage.now() < latest {
        if let Ok(batch) = tokio::time::timeout(step, source.recv(1)).await {
            return batch?.into_iter().next().ok_or_else(|| "an empty batch".into());
        }
        scene.stage.pass(step).await;
    }
    Err(format!("it did not come, though only {delay:?} were asked for").into())
}

async fn too_long_a_delay_is_refused(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..1).await?;
    let mut source = scene.source().await?;
    let Some(too_long) = source.capabilities().delay.longest().checked_add(Duration::from_secs(1)) else {
        return Ok(());
    };
    let answer = scene.take_one(&mut source).await?.give_back(Redelivery::After(too_long)).await;
    ensure!(
        matches!(answer, Err(SettleError::Unsupported { .. })),
        "{too_long:?} is longer than the product can, and the answer was {answer:?}"
    );
    scene.close_with(source, 1).await
}

async fn the_redelivered_hint_is_true(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..2).await?;
    let mut source = scene.source().await?;
    let says = source.capabilities().says_redelivered;
    let (first, again) =
        if says { (Redelivered::No, Redelivered::Yes) } else { (Redelivered::Unknown, Redelivered::Unknown) };
    let mut out = scene.take(&mut source, 2).await?;
    for delivery in &out {
        ensure!(delivery.redelivered == first, "{:?} at the first time", delivery.redelivered);
    }
    if let Some(delivery) = out.pop() {
        delivery.give_back(Redelivery::Now).await?;
    }
    let given_back = scene.take_one(&mut source).await?;
    let hint = given_back.redelivered;
    ensure!(hint == again, "{hint:?} on a message that was given back");
    scene.close(source).await?;
    let mut source = scene.source().await?;
    for delivery in scene.take(&mut source, 2).await? {
        ensure!(delivery.redelivered == again, "{:?} after the source was closed", delivery.redelivered);
    }
    Ok(())
}

/// What the broker knows to be settled is settled, whatever happens to the connection afterwards.
async fn what_is_settled_never_comes_again(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..10).await?;
    let mut source = scene.source().await?;
    let strongest = source.capabilities().settled;
    let mut weakest = strongest;
    for delivery in scene.take(&mut source, 10).await? {
        let settled = ack(delivery).await?;
        ensure!(settled <= strongest, "{settled:?}, but the capabilities say {strongest:?}");
        weakest = weakest.min(settled);
    }
    match weakest {
        Settled::Confirmed => {}
        // Written, and nobody promised that the broker has read it: wait until it has.
        Settled::Sent => scene.until_total(0).await?,
        // A crash now makes a redelivery, and that is what it said.
        Settled::Staged => return Ok(()),
    }
    scene.stage.cut().await?;
    scene.until_up(&source.health()).await?;
    scene.nothing_comes(&mut source).await?;
    scene.close_with(source, 0).await
}

/// The tags of before mean other messages now, or nothing: nothing is sent for them.
async fn an_acker_is_lost_after_a_cut(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..4).await?;
    let mut source = scene.source().await?;
    let stale = scene.take(&mut source, 4).await?;
    scene.stage.cut().await?;
    let fresh = scene.take(&mut source, 4).await?;
    for (at, delivery) in stale.into_iter().enumerate() {
        let answer = match at % 2 {
            0 => ack(delivery).await,
            _ => delivery.give_back(Redelivery::Now).await,
        };
        ensure!(matches!(answer, Err(SettleError::Lost { .. })), "an acker of before answered {answer:?}");
    }
    scene.nothing_comes(&mut source).await?;
    let total = scene.depth().await?.total();
    ensure!(total == 4, "{total} of 4 messages are left, though none was settled");
    let came: BTreeSet<_> = fresh.iter().map(body).collect();
    ensure!(came.into_iter().eq(numbers(0..4)), "not every message came again");
    for delivery in fresh {
        ack(delivery).await?;
    }
    scene.close_with(source, 0).await
}

async fn an_acker_is_lost_after_a_close(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..2).await?;
    let mut source = scene.source().await?;
    let stale = scene.take(&mut source, 2).await?;
    scene.close(source).await?;
    for (at, delivery) in stale.into_iter().enumerate() {
        let answer = match at {
            0 => ack(delivery).await,
            _ => delivery.give_back(Redelivery::Now).await,
        };
        ensure!(matches!(answer, Err(SettleError::Lost { .. })), "an acker of a closed source: {answer:?}");
    }
    scene.until_total(2).await
}
