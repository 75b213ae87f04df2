use std::collections::HashSet;

use aftercommit_core::{Destination, Message, PublishError, Subscription};
use futures_util::future::join_all;

use crate::management;
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
async fn a_missing_exchange_among_many_harms_none_of_them() {
    let queue = Queue::new("among").await;
    let publisher = queue.broker.publisher().await.unwrap();
    let publishes = (0..60).map(|n| {
        let to = match n % 3 {
            0 => Destination::new("test.no.exchange"),
            1 => Destination::new("amq.direct").with_routing_key("test.nowhere"),
            _ => queue.destination(),
        };
        let publisher = &publisher;
        async move { (n, send(&**publisher, to, Message::new("x")).await) }
    });
    for (n, answer) in join_all(publishes).await {
        let right = match (&answer, n % 3) {
            (Err(PublishError::Refused { later: true, .. }), 0)
            | (Err(PublishError::Unroutable { .. }), 1) => true,
            (Ok(_), rest) => rest == 2,
            _ => false,
        };
        assert!(right, "{n}: {answer:?}");
    }
}

#[tokio::test]
async fn an_exchange_deleted_later_leaves_the_open_ones_unknown_and_is_refused_next() {
    let queue = Queue::new("deleted").await;
    let exchange = crate::support::unique("deleted.exchange");
    management::put(&format!("exchanges/%2f/{exchange}"), &serde_json::json!({ "type": "fanout" }));
    let publisher = queue.broker.publisher().await.unwrap();
    let answer = send(&*publisher, Destination::new(&exchange), Message::new("x")).await;
    assert!(matches!(answer, Err(PublishError::Unroutable { .. })), "{answer:?}");
    management::delete(&format!("exchanges/%2f/{exchange}"));
    let to = |n: u32| if n == 10 { Destination::new(&exchange) } else { queue.destination() };
    let answers = join_all((0..20).map(|n| send(&*publisher, to(n), Message::new(n.to_string())))).await;
    let mut kept = 0;
    for (n, answer) in (0..).zip(answers) {
        match answer {
            Ok(_) if n != 10 => kept += 1,
            Err(PublishError::Unknown { .. }) => {}
            // It was alone when the others had been confirmed before it.
            Err(PublishError::Refused { later: true, .. }) if n == 10 => {}
            answer => panic!("{n}: {answer:?}"),
        }
    }
    // One at a time, the one that closes the channel is refused and the others go.
    let answer = send(&*publisher, Destination::new(&exchange), Message::new("x")).await;
    assert!(matches!(answer, Err(PublishError::Refused { later: true, .. })), "{answer:?}");
    send(&*publisher, queue.destination(), Message::new("last")).await.unwrap();
    let mut source = queue.source().await;
    let mut bodies = Vec::new();
    while bodies.last().is_none_or(|body| body != "last") {
        bodies.push(text(&one(&mut source).await));
    }
    assert!(bodies.len() > kept, "{kept} were confirmed, {bodies:?} are there");
}

/// H17: nacks that come with `multiple`, acks and returns all mixed on one channel.
#[tokio::test]
async fn a_full_queue_rejects_and_exactly_the_accepted_are_there() {
    for kind in ["quorum", "classic"] {
        let name = crate::support::unique("full");
        let arguments =
            serde_json::json!({ "x-queue-type": kind, "x-max-length": 10, "x-overflow": "reject-publish" });
        management::queue(&name, &arguments);
        let broker = crate::support::broker(config()).await;
        let queue = Queue::of(broker, Subscription::new("tester", name).unwrap());
        let publisher = queue.broker.publisher().await.unwrap();
        let publishes = (0..1000).map(|n| {
            let to = if n % 5 == 0 {
                queue.destination().with_routing_key("test.nowhere")
            } else {
                queue.destination()
            };
            let publisher = &publisher;
            async move { (n, send(&**publisher, to, Message::new(n.to_string())).await) }
        });
        let mut accepted = HashSet::new();
        let mut rejected = 0;
        for (n, answer) in join_all(publishes).await {
            match answer {
                Ok(_) if n % 5 != 0 => drop(accepted.insert(n.to_string())),
                Err(PublishError::Refused { later: true, .. }) if n % 5 != 0 => rejected += 1,
                Err(PublishError::Unroutable { .. }) if n % 5 == 0 => {}
                answer => panic!("{kind} {n}: {answer:?}"),
            }
        }
        assert!(rejected > 0, "{kind}: the queue was never full");
        let mut source = queue.source().await;
        let mut there = HashSet::new();
        while there.len() < accepted.len() {
            let delivery = one(&mut source).await;
            assert!(there.insert(text(&delivery)), "{kind}: twice");
            ack(delivery).await.unwrap();
        }
        assert_eq!(there, accepted, "{kind}");
        nothing(&mut source).await;
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
