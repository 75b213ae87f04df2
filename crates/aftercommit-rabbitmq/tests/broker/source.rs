use std::time::{Duration, Instant};

use aftercommit_core::{Delay, Redelivered, Redelivery, SettleError, Settled, Subscription};

use crate::support::{Queue, ack, config, many, nothing, one, text};

#[tokio::test]
async fn what_is_acked_does_not_come_again() {
    for queue in [Queue::new("acked").await, Queue::classic("acked").await] {
        queue.publish(1..=5).await;
        let mut source = queue.source().await;
        assert!(source.health().is_up());
        for (delivery, body) in many(&mut source, 5).await.into_iter().zip(1..) {
            assert_eq!((text(&delivery), delivery.redelivered), (body.to_string(), Redelivered::No));
            assert_eq!(ack(delivery).await.unwrap(), Settled::Sent);
        }
        source.close().await.unwrap();
        nothing(&mut queue.source().await).await;
    }
}

#[tokio::test]
async fn settling_touches_no_neighbour() {
    let queue = Queue::new("neighbours").await;
    queue.publish(1..=5).await;
    let mut source = queue.source().await;
    let mut deliveries = many(&mut source, 5).await;
    for index in [4, 2, 0] {
        ack(deliveries.remove(index)).await.unwrap();
    }
    source.close().await.unwrap();
    assert!(deliveries.iter().all(aftercommit_core::Delivery::is_lost));
    let mut source = queue.source().await;
    let again = many(&mut source, 2).await;
    assert_eq!(again.iter().map(text).collect::<Vec<_>>(), ["2", "4"]);
    assert!(again.iter().all(|delivery| delivery.redelivered == Redelivered::Yes));
    nothing(&mut source).await;
}

#[tokio::test]
async fn ackers_of_a_closed_source_are_lost() {
    let queue = Queue::new("closed").await;
    queue.publish(1..=2).await;
    let mut source = queue.source().await;
    let mut deliveries = many(&mut source, 2).await;
    let health = source.health();
    source.close().await.unwrap();
    assert!(!health.is_up());
    let error = ack(deliveries.remove(0)).await.unwrap_err();
    assert!(matches!(error, SettleError::Lost { .. }), "{error:?}");
    let error = deliveries.remove(0).give_back(Redelivery::Now).await.unwrap_err();
    assert!(matches!(error, SettleError::Lost { .. }), "{error:?}");
    assert_eq!(many(&mut queue.source().await, 2).await.len(), 2);
}

#[tokio::test]
async fn a_dropped_source_leaves_its_deliveries_to_the_next() {
    let queue = Queue::new("dropped").await;
    queue.publish([1]).await;
    let mut source = queue.source().await;
    drop(one(&mut source).await);
    drop(source);
    let again = one(&mut queue.source().await).await;
    assert_eq!(again.redelivered, Redelivered::Yes);
}

#[tokio::test]
async fn given_back_now_comes_again_at_once_and_spends_no_delivery_limit() {
    let queue = Queue::with(config().with_delivery_limit(2), "now", None).await;
    queue.publish([1]).await;
    let mut source = queue.source().await;
    for round in 0..10 {
        let delivery = one(&mut source).await;
        let expected = if round == 0 { Redelivered::No } else { Redelivered::Yes };
        assert_eq!(delivery.redelivered, expected, "round {round}");
        assert_eq!(delivery.give_back(Redelivery::Now).await.unwrap(), Settled::Staged);
    }
    ack(one(&mut source).await).await.unwrap();
    source.close().await.unwrap();
    nothing(&mut queue.source().await).await;
}

#[tokio::test]
async fn given_back_for_later_waits_in_the_client_while_others_flow() {
    let queue = Queue::new("later").await;
    queue.publish(1..=2).await;
    let mut source = queue.source().await;
    let delay = Duration::from_millis(700);
    let started = Instant::now();
    one(&mut source).await.give_back(Redelivery::After(delay)).await.unwrap();
    let second = one(&mut source).await;
    assert_eq!(text(&second), "2");
    assert!(started.elapsed() < delay);
    let first = one(&mut source).await;
    assert_eq!(text(&first), "1");
    assert!(started.elapsed() >= delay);
}

#[tokio::test]
async fn a_delay_beyond_the_longest_is_refused() {
    let longest = Duration::from_secs(60);
    let queue = Queue::with(config().with_longest_hold(longest).unwrap(), "longest", None).await;
    queue.publish([1]).await;
    let mut source = queue.source().await;
    assert_eq!(source.capabilities().delay, Delay::Held { longest });
    let late = Redelivery::After(longest + Duration::from_millis(1));
    let error = one(&mut source).await.give_back(late).await.unwrap_err();
    assert!(matches!(error, SettleError::Unsupported { .. }), "{error:?}");
}

#[tokio::test]
async fn the_prefetch_bounds_what_is_out_and_held() {
    for queue in [
        Queue::with(config(), "prefetch", Some(3)).await,
        Queue::with(config().with_queue_type(aftercommit_rabbitmq::QueueType::Classic), "prefetch", Some(3))
            .await,
    ] {
        queue.publish(1..=10).await;
        let mut source = queue.source().await;
        assert_eq!(source.capabilities().prefetch, 3);
        let mut out = many(&mut source, 3).await;
        nothing(&mut source).await;
        out.remove(0).give_back(Redelivery::After(Duration::from_secs(60))).await.unwrap();
        nothing(&mut source).await;
        ack(out.remove(0)).await.unwrap();
        assert_eq!(text(&one(&mut source).await), "4");
        nothing(&mut source).await;
    }
}

#[tokio::test]
async fn a_cancelled_recv_has_taken_nothing() {
    let queue = Queue::new("cancelled").await;
    let mut source = queue.source().await;
    let publishing = async {
        queue.publish(1..=50).await;
    };
    tokio::pin!(publishing);
    let mut published = false;
    let mut seen = Vec::new();
    while seen.len() < 50 {
        tokio::select! {
            biased;
            () = &mut publishing, if !published => published = true,
            batch = source.recv(1) => {
                for delivery in batch.unwrap() {
                    seen.push(text(&delivery));
                    ack(delivery).await.unwrap();
                }
            }
            () = tokio::time::sleep(Duration::from_micros(300)) => {}
        }
    }
    assert_eq!(seen, (1..=50).map(|body| body.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_missing_queue_is_named_at_once() {
    let queue = Queue::new("present").await;
    let missing = Subscription::new("tester", "test.not.there").unwrap();
    let error = queue.broker.source(&missing).await.err().unwrap();
    assert!(error.to_string().contains("test.not.there"), "{error}");
    assert!(!error.is_retryable());
}
