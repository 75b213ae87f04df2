//! A broker that lives in the world's time. Tokio's clock is paused, so nothing waits here either.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::time::Duration;

use aftercommit_core::{
    Broker, Delay, Destination, Message, Outgoing, PublishError, Publisher, Redelivery, Subscription,
};
use aftercommit_memory::{MemoryBroker, Settings, Time};
use tokio::time::{Instant, timeout};

const WAIT: Duration = Duration::from_secs(90);

async fn broker(settings: Settings) -> (MemoryBroker, Subscription, Box<dyn Publisher>) {
    let broker = MemoryBroker::with_settings(Settings { time: Time::Real, ..settings });
    let subscription = Subscription::new("inventory", "orders").unwrap();
    broker.declare(&subscription).await.unwrap();
    let publisher = broker.publisher().await.unwrap();
    (broker, subscription, publisher)
}

fn order() -> Outgoing {
    Outgoing::new(Destination::new("").with_routing_key("orders"), Message::new("book").with_id("evt-1"))
}

async fn comes_again_when_it_is_due(delay: Delay) {
    let (broker, subscription, publisher) = broker(Settings { delay, ..Settings::default() }).await;
    publisher.publish(order()).await.unwrap();
    let mut source = broker.source(&subscription).await.unwrap();
    for delivery in source.recv(1).await.unwrap().into_vec() {
        delivery.give_back(Redelivery::After(WAIT)).await.unwrap();
    }
    let start = Instant::now();
    let again = timeout(WAIT * 2, source.recv(1)).await.unwrap().unwrap();
    assert_eq!(again.len(), 1);
    assert!((WAIT..WAIT + Duration::from_secs(1)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_client_holds_comes_again_when_it_is_due() {
    comes_again_when_it_is_due(Settings::default().delay).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_in_the_queue_comes_again_when_it_is_due() {
    comes_again_when_it_is_due(Delay::Native { longest: Duration::from_secs(600) }).await;
}

#[tokio::test(start_paused = true)]
async fn a_publish_without_an_answer_ends_at_its_deadline() {
    let (broker, _, publisher) = broker(Settings::default()).await;
    broker.stall();
    let start = Instant::now();
    let answer = timeout(WAIT * 2, publisher.publish(order())).await.unwrap();
    assert!(matches!(answer, Err(PublishError::Unknown { .. })), "{answer:?}");
    assert_eq!(start.elapsed().as_secs(), Settings::default().publish_deadline.as_secs());
}
