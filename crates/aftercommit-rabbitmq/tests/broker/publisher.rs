use std::collections::HashSet;

use aftercommit_core::{Destination, Message, PublishError};
use futures_util::future::join_all;

use crate::support::{Queue, ack, config, nothing, one, send, text};

#[tokio::test]
async fn two_hundred_at_once_get_their_own_answers_with_half_unroutable() {
    let queue = Queue::new("halves").await;
    let publisher = queue.broker.publisher().await.unwrap();
    for round in 0..5 {
        let publishes = (0..200).map(|n| {
            let good = n % 2 == 0;
            let to = if good {
                queue.destination()
            } else {
                Destination::new("").with_routing_key("test.nowhere")
            };
            let publisher = &publisher;
            async move { (n, good, send(&**publisher, to, Message::new(format!("{round}/{n}"))).await) }
        });
        for (n, good, answer) in join_all(publishes).await {
            match answer {
                Ok(_) => assert!(good, "{n} was returned"),
                Err(PublishError::Unroutable { .. }) => assert!(!good, "{n} was taken"),
                Err(error) => panic!("{n}: {error}"),
            }
        }
    }
    let mut source = queue.source().await;
    let mut bodies = HashSet::new();
    while bodies.len() < 500 {
        let delivery = one(&mut source).await;
        bodies.insert(text(&delivery));
        ack(delivery).await.unwrap();
    }
    nothing(&mut source).await;
}

#[tokio::test]
async fn a_publish_to_a_missing_exchange_harms_no_later_one() {
    let queue = Queue::new("missing").await;
    let publisher = queue.broker.publisher().await.unwrap();
    for _ in 0..3 {
        let answer = send(&*publisher, Destination::new("test.no.exchange"), Message::new("x")).await;
        match answer.unwrap_err() {
            PublishError::Refused { later: true, reason, .. } => {
                assert!(reason.contains("test.no.exchange"), "{reason}")
            }
            error => panic!("{error:?}"),
        }
        send(&*publisher, queue.destination(), Message::new("good")).await.unwrap();
    }
}

#[tokio::test]
async fn names_and_bodies_that_do_not_fit_are_refused_before_sending() {
    let queue = Queue::with(config().with_max_message_size(1000).unwrap(), "fit", None).await;
    let publisher = queue.broker.publisher().await.unwrap();
    let long = "x".repeat(256);
    for (to, message) in [
        (queue.destination().with_routing_key(&long), Message::new("")),
        (Destination::new(&long), Message::new("")),
        (queue.destination(), Message::new("").with_type(&long)),
    ] {
        let error = send(&*publisher, to, message).await.unwrap_err();
        assert!(matches!(error, PublishError::Refused { later: false, .. }), "{error:?}");
    }
    let error = send(&*publisher, queue.destination(), Message::new(vec![0; 1001])).await.unwrap_err();
    assert!(matches!(error, PublishError::TooLarge { .. }), "{error:?}");
    let mut wide = Message::new("");
    wide.headers.append("wide", "y".repeat(200_000));
    let error = send(&*publisher, queue.destination(), wide).await.unwrap_err();
    assert!(matches!(error, PublishError::TooLarge { .. }), "{error:?}");
    send(&*publisher, queue.destination(), Message::new(vec![0; 1000])).await.unwrap();
}
