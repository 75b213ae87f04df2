use std::sync::Arc;

use aftercommit_core::{Acker, Message, Redelivered, Redelivery, SettleError, Settled};
use async_trait::async_trait;
use futures_util::FutureExt as _;

use super::*;

struct Nothing;

#[async_trait]
impl Acker for Nothing {
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        Ok(Settled::Confirmed)
    }

    async fn give_back(self: Box<Self>, _: Redelivery) -> Result<Settled, SettleError> {
        Ok(Settled::Confirmed)
    }
}

fn delivery(id: &str, key: Option<&str>) -> Delivery {
    let mut message = Message::new("").with_id(id.to_owned());
    message.key = key.map(|key| key.to_owned().into());
    Delivery::new(Arc::new(message), Redelivered::No, Box::new(Nothing))
}

fn ids(deliveries: &[Delivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| String::from_utf8_lossy(delivery.message.id.as_deref().unwrap_or_default()).into())
        .collect()
}

#[tokio::test]
async fn a_key_stays_on_its_lane_in_order() {
    let dispatch = Dispatch::new(3);
    for n in 0..30 {
        dispatch.push(delivery(&n.to_string(), Some(if n % 2 == 0 { "even" } else { "odd" })));
    }
    let mut seen = Vec::new();
    for lane in 0..3 {
        while let Some(Some(batch)) = dispatch.take(lane, 4, Duration::ZERO).now_or_never() {
            seen.extend(ids(&batch));
        }
    }
    let even: Vec<_> = seen.iter().filter(|n| n.parse::<u32>().unwrap().is_multiple_of(2)).cloned().collect();
    assert_eq!(even, (0..30).step_by(2).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(seen.len(), 30);
}

#[tokio::test]
async fn a_burst_is_shared_with_idle_lanes() {
    let dispatch = Arc::new(Dispatch::new(2));
    let other = {
        let dispatch = Arc::clone(&dispatch);
        tokio::spawn(async move { dispatch.take(1, 100, Duration::ZERO).await.map(|batch| batch.len()) })
    };
    while dispatch.lock().idle.is_empty() {
        tokio::task::yield_now().await;
    }
    for n in 0..10 {
        dispatch.push(delivery(&n.to_string(), None));
    }
    let first = dispatch.take(0, 100, Duration::ZERO).await.unwrap().len();
    let second = other.await.unwrap().unwrap();
    let rest = dispatch.close().len();
    assert_eq!(first + second + rest, 10);
    assert!(first < 10 || second < 10);
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_the_age_of_its_oldest_only() {
    let dispatch = Dispatch::new(1);
    let start = Instant::now();
    dispatch.push(delivery("1", None));
    let wait = Duration::from_millis(50);
    let batch = dispatch.take(0, 10, wait).await.unwrap();
    assert_eq!(batch.len(), 1);
    assert!(start.elapsed() >= wait && start.elapsed() < 2 * wait);

    for n in 0..10 {
        dispatch.push(delivery(&n.to_string(), None));
    }
    let start = Instant::now();
    assert_eq!(dispatch.take(0, 10, wait).await.unwrap().len(), 10);
    assert_eq!(start.elapsed(), Duration::ZERO, "a full batch does not wait");
}

#[tokio::test]
async fn closing_ends_takers_and_answers_the_rest() {
    let dispatch = Arc::new(Dispatch::new(1));
    let taker = {
        let dispatch = Arc::clone(&dispatch);
        tokio::spawn(async move { dispatch.take(0, 1, Duration::ZERO).await.is_none() })
    };
    while dispatch.lock().idle.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(dispatch.close().is_empty());
    assert!(taker.await.unwrap());
    dispatch.push(delivery("late", Some("k")));
    assert_eq!(ids(&dispatch.close()), ["late"]);
}
