//! Cut, restarted, closed, dropped: nothing is lost and consumption goes on.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use aftercommit_core::{BoxError, Message, Outgoing, Redelivery, SettleError};

use super::cases;
use crate::broker::scene::{Scene, ack, body, ensure, numbers, pause};
use crate::broker::stage::{Part, Stage};

cases! { "connection":
    cuts_in_a_stream_lose_nothing [Cut],
    a_restart_in_a_stream_loses_nothing [Restart],
    a_waiting_recv_goes_on_after_a_cut [Cut],
    health_tells_the_truth [Outage],
    what_cannot_be_reached_says_so [Outage],
    a_source_made_again_is_read_again [RemovedSource],
    a_dropped_recv_takes_nothing,
    what_is_out_at_close_comes_again,
    what_is_held_at_close_comes_again,
    closing_flushes_what_is_staged,
    closing_beside_ackers_hangs_nothing,
    a_dead_process_loses_nothing,
}

type Done = Result<(), BoxError>;

const STREAM: u32 = 200;

#[derive(Clone, Copy)]
enum Blow {
    Cut,
    Restart,
}

async fn cuts_in_a_stream_lose_nothing(stage: Arc<dyn Stage>) -> Done {
    stream(Scene::open(stage).await?, Blow::Cut, &[25, 90, 170]).await
}

async fn a_restart_in_a_stream_loses_nothing(stage: Arc<dyn Stage>) -> Done {
    stream(Scene::open(stage).await?, Blow::Restart, &[100]).await
}

/// Publishes and consumes at the same time, and strikes with deliveries out whenever so many are
/// done. A message counts as done when its ack succeeded; what was lost must come again.
async fn stream(scene: Scene, blow: Blow, at: &[usize]) -> Done {
    let mut source = scene.source().await?;
    let mut done = BTreeSet::new();
    let publishing = async {
        for number in 0..STREAM {
            send_until_ok(&scene, number).await?;
            tokio::task::yield_now().await;
        }
        Ok::<_, BoxError>(())
    };
    let consuming = async {
        let mut blows = at.iter();
        let mut next = blows.next();
        while done.len() < STREAM as usize {
            let what = format!("messages after {} of {STREAM}", done.len());
            let batch = scene.within(&what, source.recv(7)).await??;
            if next.is_some_and(|at| *at <= done.len()) {
                strike(&scene, blow).await?;
                next = blows.next();
            }
            for delivery in batch {
                let body = body(&delivery);
                match ack(delivery).await {
                    Ok(_) => drop(done.insert(body)),
                    Err(SettleError::Lost { .. } | SettleError::Backend(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        ensure!(next.is_none(), "the stream ended before every blow");
        Ok(())
    };
    tokio::try_join!(publishing, consuming)?;
    // Copies of publishes without an answer and redeliveries of acks on their way may be left.
    while let Ok(batch) = tokio::time::timeout(scene.stage.quiet(), source.recv(7)).await {
        for delivery in batch? {
            ack(delivery).await?;
        }
    }
    scene.close_with(source, 0).await
}

async fn strike(scene: &Scene, blow: Blow) -> Done {
    match blow {
        Blow::Cut => scene.stage.cut().await,
        Blow::Restart => scene.stage.restart().await,
    }
}

/// Publishes until there is a positive answer; a copy too many is no fault here.
async fn send_until_ok(scene: &Scene, number: u32) -> Done {
    let sending = async {
        loop {
            let message = Message::new(number.to_string());
            match scene.publisher.publish(Outgoing::new(scene.to.clone(), message)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_retryable() => pause().await,
                Err(error) => return Err(error.into()),
            }
        }
    };
    scene.within("a positive answer to a publish", sending).await?
}

async fn a_waiting_recv_goes_on_after_a_cut(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    let waiting = async { Ok(scene.within("a message after a cut", source.recv(1)).await??) };
    let cutting = async {
        pause().await;
        scene.stage.cut().await?;
        send_until_ok(&scene, 0).await
    };
    let (batch, ()) = tokio::try_join!(waiting, cutting)?;
    ensure!(batch.len() == 1, "{} deliveries of one message", batch.len());
    for delivery in batch {
        ack(delivery).await?;
    }
    scene.close_with(source, 0).await
}

async fn health_tells_the_truth(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    let health = source.health();
    scene.stage.take_down().await?;
    scene.until_down(&health).await?;
    ensure!(health.reason().is_some_and(|reason| !reason.is_empty()), "health is down without a reason");
    scene.nothing_comes(&mut source).await?;
    scene.stage.bring_up().await?;
    scene.until_up(&health).await?;
    send_until_ok(&scene, 0).await?;
    let came = scene.take_one(&mut source).await?;
    ack(came).await?;
    scene.close(source).await?;
    ensure!(!health.is_up(), "health is up though the source is closed");
    Ok(())
}

async fn a_source_made_again_is_read_again(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    scene.send_numbers(0..1).await?;
    let stale = scene.take_one(&mut source).await?;
    scene.stage.remove(Part::Source, &scene.subscription).await?;
    scene.until_down(&source.health()).await?;
    scene.broker.declare(&scene.subscription).await?;
    scene.until_up(&source.health()).await?;
    let answer = ack(stale).await;
    ensure!(matches!(answer, Err(SettleError::Lost { .. })), "an acker of the queue of before: {answer:?}");
    send_until_ok(&scene, 1).await?;
    let came = scene.take_one(&mut source).await?;
    ensure!(body(&came) == "1", "{} came", body(&came));
    ack(came).await?;
    scene.close_with(source, 0).await
}

/// Whoever opens something while the broker is away is told so, and that it is worth another try.
async fn what_cannot_be_reached_says_so(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.take_down().await?;
    let opened = scene.within("an error", scene.broker.source(&scene.subscription)).await?;
    let error = opened.err().ok_or("a source was opened though the broker is away")?;
    ensure!(error.is_retryable(), "the broker is away, and the answer says not to try again: {error}");
    let checked = scene.within("an error", scene.broker.check(&scene.subscription)).await?;
    let error = checked.err().ok_or("a check was made though the broker is away")?;
    ensure!(error.is_retryable(), "the broker is away, and the answer says not to try again: {error}");
    scene.stage.bring_up().await?;
    let opened = async {
        while scene.broker.source(&scene.subscription).await.is_err() {
            pause().await;
        }
    };
    scene.within("a source when the broker is back", opened).await
}

/// Drops `recv` after one, two, three polls and after some microseconds. What it had taken would be
/// missing, because nothing is settled and the connection stays.
async fn a_dropped_recv_takes_nothing(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::with_prefetch(stage, 40).await?;
    let mut source = scene.source().await?;
    scene.send_numbers(0..30).await?;
    let mut out = Vec::new();
    for round in 0..60_u64 {
        let came = match round % 4 {
            0 => {
                let wait = Duration::from_micros(round * 7919 % 3000);
                tokio::time::timeout(wait, source.recv(1)).await.ok()
            }
            polls => polled(source.recv(1), polls, scene.stage.quiet()).await,
        };
        if let Some(batch) = came {
            out.extend(batch?);
        }
        if out.len() >= 25 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let rest = 30_usize.saturating_sub(out.len());
    out.extend(scene.take(&mut source, rest).await?);
    scene.nothing_comes(&mut source).await?;
    let bodies: BTreeSet<_> =
        out.iter().map(|delivery| body(delivery).parse::<u32>()).collect::<Result<_, _>>()?;
    ensure!(out.len() == 30 && bodies.into_iter().eq(0..30), "not each message once: {}", out.len());
    Ok(())
}

/// What the future answers within so many polls.
async fn polled<F: Future + Send>(future: F, polls: u64, most: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    let bounded = poll_fn(|context| {
        if let Poll::Ready(found) = future.as_mut().poll(context) {
            return Poll::Ready(Some(found));
        }
        left -= 1;
        if left == 0 { Poll::Ready(None) } else { Poll::Pending }
    });
    tokio::time::timeout(most, bounded).await.ok().flatten()
}

async fn what_is_out_at_close_comes_again(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..5).await?;
    let mut source = scene.source().await?;
    let out = scene.take(&mut source, 5).await?;
    scene.close_with(source, 5).await?;
    let mut source = scene.source().await?;
    let mut bodies = scene.consume(&mut source, 5).await?;
    bodies.sort();
    ensure!(bodies == numbers(0..5), "{bodies:?} came again of 5");
    drop(out);
    scene.close_with(source, 0).await
}

async fn what_is_held_at_close_comes_again(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let delay = scene.stage.delay();
    scene.send_numbers(0..3).await?;
    let mut source = scene.source().await?;
    for delivery in scene.take(&mut source, 3).await? {
        delivery.give_back(Redelivery::After(delay)).await?;
    }
    scene.close_with(source, 3).await?;
    let mut source = scene.source().await?;
    scene.stage.pass(delay).await;
    let mut bodies = scene.consume(&mut source, 3).await?;
    bodies.sort();
    ensure!(bodies == numbers(0..3), "{bodies:?} came again of 3");
    scene.close_with(source, 0).await
}

async fn closing_flushes_what_is_staged(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..5).await?;
    let mut source = scene.source().await?;
    for delivery in scene.take(&mut source, 5).await? {
        ack(delivery).await?;
    }
    scene.close_with(source, 0).await
}

/// Everybody ends, and each message is either settled or comes again.
async fn closing_beside_ackers_hangs_nothing(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..20).await?;
    let mut source = scene.source().await?;
    let mut out = scene.take(&mut source, 20).await?;
    let kept = out.split_off(18);
    let acking = out.into_iter().enumerate().map(|(at, delivery)| async move {
        for _ in 0..at {
            tokio::task::yield_now().await;
        }
        let body = body(&delivery);
        (body, ack(delivery).await)
    });
    let closing = async {
        tokio::task::yield_now().await;
        source.close().await
    };
    let (answers, closed) = scene
        .within(
            "close and ackers",
            futures_util::future::join(futures_util::future::join_all(acking), closing),
        )
        .await?;
    closed?;
    drop(kept);
    let mut again = BTreeSet::new();
    let mut source = scene.source().await?;
    while let Ok(batch) = tokio::time::timeout(scene.stage.quiet(), source.recv(5)).await {
        for delivery in batch? {
            again.insert(body(&delivery));
            ack(delivery).await?;
        }
    }
    for (body, answer) in answers {
        match answer {
            Ok(settled) => {
                ensure!(!again.contains(&body), "{body} came again after {settled:?} and a close in peace");
            }
            Err(SettleError::Lost { .. }) => {
                ensure!(again.contains(&body), "{body} was lost and did not come again");
            }
            Err(SettleError::Backend(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    scene.close_with(source, 0).await
}

/// The source and its connection are dropped without a close, as a kill does; the ackers live on in
/// the hands of somebody who must not be able to do harm.
async fn a_dead_process_loses_nothing(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..4).await?;
    let other = scene.stage.connect().await?;
    let mut dying = other.source(&scene.subscription).await?;
    let out = scene.take(&mut dying, 4).await?;
    drop(dying);
    drop(other);
    let mut source = scene.source().await?;
    let mut bodies = scene.consume(&mut source, 4).await?;
    bodies.sort();
    ensure!(bodies == numbers(0..4), "{bodies:?} came again of 4");
    drop(out);
    scene.close_with(source, 0).await
}
