use std::time::Duration;

use aftercommit_core::{Message, Redelivered, Redelivery, SettleError, Settled};
use tokio::time::{Instant, sleep};

use crate::support::{VISIBILITY, World, ack, body, nothing_comes, take, until};

/// Two and a half timeouts: a lease that was not renewed would be over twice.
#[tokio::test]
async fn a_long_handler_keeps_its_message() {
    let world = World::new().await;
    world.send(&["long"]).await;
    let (mut source, mut other) = (world.source().await, world.source().await);
    let delivery = take(&mut source).await;
    nothing_comes(&mut other, VISIBILITY * 5 / 2).await;
    assert!(!delivery.is_lost());
    assert_eq!(ack(delivery).await.unwrap(), Settled::Confirmed);
    assert_eq!(world.total().await, 0);
}

/// As after a freeze: somebody else has it by now.
#[tokio::test]
async fn a_lease_that_was_taken_over_is_lost_and_settles_nothing() {
    let world = World::new().await;
    world.send(&["1", "2"]).await;
    let mut source = world.source().await;
    let (one, two) = (take(&mut source).await, take(&mut source).await);
    world.tamper("UPDATE aftercommit_queue_messages SET token = zeroblob(16)").await;
    // Before the source knows, the table decides.
    assert!(matches!(ack(one).await, Err(SettleError::Lost { .. })));
    until("the source has found out at its next renewal", || two.is_lost()).await;
    assert!(matches!(two.give_back(Redelivery::Now).await, Err(SettleError::Lost { .. })));
    assert_eq!(world.total().await, 2, "nothing was settled");
}

#[tokio::test]
async fn a_delivery_that_is_dropped_comes_again_while_its_source_lives() {
    let world = World::new().await;
    world.send(&["dropped"]).await;
    let mut source = world.source().await;
    let start = Instant::now();
    drop(take(&mut source).await);
    let again = take(&mut source).await;
    assert!(start.elapsed() >= VISIBILITY * 9 / 10, "it came after {:?}", start.elapsed());
    assert_eq!(again.redelivered, Redelivered::Yes);
    ack(again).await.unwrap();
}

/// What is dropped takes its place of the prefetch until its lease ends, and not longer.
#[tokio::test]
async fn dropped_deliveries_do_not_use_up_the_prefetch() {
    let world = World::new().await;
    world.send(&["1", "2"]).await;
    let narrow = world.subscription.clone().with_prefetch(1).unwrap();
    let mut source = aftercommit_core::Broker::source(&world.queue, &narrow).await.unwrap();
    for _ in 0..3 {
        assert_eq!(body(&take(&mut source).await), b"1");
    }
}

#[tokio::test]
async fn closing_gives_back_at_once_and_what_waits_keeps_waiting() {
    let world = World::with(|config| config.with_visibility(Duration::from_secs(3600)).unwrap()).await;
    world.send(&["waiting", "out"]).await;
    let mut source = world.source().await;
    let (waiting, out) = (take(&mut source).await, take(&mut source).await);
    waiting.give_back(Redelivery::After(Duration::from_secs(3600))).await.unwrap();
    let depth = world.queue.depth("orders").await.unwrap();
    assert_eq!((depth.ready, depth.waiting, depth.unsettled), (0, 1, 1));
    source.close().await.unwrap();
    assert!(out.is_lost());
    let depth = world.queue.depth("orders").await.unwrap();
    assert_eq!((depth.ready, depth.waiting, depth.unsettled), (1, 1, 0));
    let mut source = world.source().await;
    assert_eq!(body(&take(&mut source).await), b"out");
}

/// A dead process's lease and a delay, both of them begun an hour in the future.
#[tokio::test]
async fn a_clock_that_jumped_back_blocks_nothing_for_longer() {
    let world = World::new().await;
    world.send(&["leased", "delayed"]).await;
    let hour = 3_600_000;
    world
        .tamper(&format!(
            "UPDATE aftercommit_queue_messages SET hidden_for = 900, \
             visible_at = unixepoch() * 1000 + {hour} + 900, \
             token = CASE position WHEN 1 THEN zeroblob(16) END"
        ))
        .await;
    let mut source = world.source().await;
    for wanted in [b"leased".as_slice(), b"delayed"] {
        let delivery = take(&mut source).await;
        assert_eq!(body(&delivery), wanted);
        ack(delivery).await.unwrap();
    }
}

/// Due ones go back to their old places.
#[tokio::test]
async fn what_is_due_comes_in_the_order_of_publishing() {
    let world = World::new().await;
    world.send(&["1", "2", "3"]).await;
    let mut source = world.source().await;
    let first = take(&mut source).await;
    first.give_back(Redelivery::After(Duration::from_millis(50))).await.unwrap();
    sleep(Duration::from_millis(60)).await;
    for wanted in [b"1", b"2", b"3"] {
        let delivery = take(&mut source).await;
        assert_eq!(body(&delivery), wanted);
        ack(delivery).await.unwrap();
    }
}

/// Far below the pause between two looks, which is a minute here.
#[tokio::test]
async fn what_this_process_publishes_is_noticed_at_once() {
    let world = World::with(|config| config.with_poll(Duration::from_secs(60)).unwrap()).await;
    let mut source = world.source().await;
    // Until the pauses are long.
    nothing_comes(&mut source, Duration::from_millis(700)).await;
    let start = Instant::now();
    let (delivery, ()) = tokio::join!(take(&mut source), async {
        sleep(Duration::from_millis(20)).await;
        world.send(&["quick"]).await;
    });
    assert!(start.elapsed() < Duration::from_millis(500), "it took {:?}", start.elapsed());
    ack(delivery).await.unwrap();
}

#[tokio::test]
async fn a_lease_does_not_write_the_body_again_and_an_ack_takes_it_along() {
    let world = World::new().await;
    world.publish(Message::new(vec![7; 1 << 20])).await.unwrap();
    world.tamper("PRAGMA wal_checkpoint(TRUNCATE)").await;
    let mut source = world.source().await;
    let delivery = take(&mut source).await;
    delivery.give_back(Redelivery::Now).await.unwrap();
    let delivery = take(&mut source).await;
    let log = world.folder.path().join("queue.db-wal").metadata().unwrap().len();
    assert!((1..200_000).contains(&log), "{log} bytes in the log");
    ack(delivery).await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM aftercommit_queue_contents")
        .fetch_one(&mut world.foreign().await)
        .await
        .unwrap();
    assert_eq!(left, 0);
}
