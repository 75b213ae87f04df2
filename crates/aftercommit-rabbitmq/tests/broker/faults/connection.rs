use std::collections::HashSet;
use std::time::Duration;

use aftercommit_conformance::proxy::{Direction, Pattern};
use aftercommit_core::{Message, PublishError, Redelivery, SettleError};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use aftercommit_rabbitmq::Config;
use tokio::io::AsyncReadExt;

use super::{Proxied, until_down, until_up};
use crate::support::{PATIENCE, ack, many, nothing, one, send, text};

/// Consumes until each of so many has been acked at least once, whatever happens to the connection.
async fn consume(source: &mut Box<dyn aftercommit_core::Source>, count: usize) -> HashSet<String> {
    let mut done = HashSet::new();
    while done.len() < count {
        let delivery = one(source).await;
        let body = text(&delivery);
        match ack(delivery).await {
            Ok(_) => drop(done.insert(body)),
            Err(SettleError::Lost { .. } | SettleError::Backend(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    done
}

#[tokio::test]
async fn consuming_goes_on_after_a_cut_at_any_byte() {
    let place = Proxied::new("cut").await;
    // The handshake takes about 700 bytes each way: before, in and after it, in a frame and between two.
    for direction in [Direction::ToClient, Direction::ToServer] {
        for bytes in [0, 1, 7, 300, 520, 600, 700, 800, 900, 1000, 1500, 3000, 3001, 3002, 3003] {
            place.direct.publish(0..40).await;
            let mut source = place.source().await;
            // The first generation, or the next one while it is being built.
            let cut = place.proxy.cut_after_bytes(direction, bytes);
            place.proxy.cut();
            consume(&mut source, 40).await;
            cut.disarm();
            // What was acked in the last moment of a connection may come once more.
            while let Ok(batch) = timeout(Duration::from_millis(50), source.recv(10)).await {
                for delivery in batch.unwrap() {
                    ack(delivery).await.unwrap();
                }
            }
            source.close().await.unwrap();
        }
    }
    nothing(&mut place.direct.source().await).await;
}

#[tokio::test]
async fn publishing_goes_on_after_a_cut_at_any_byte() {
    let place = Proxied::new("cutpub").await;
    let mut confirmed = HashSet::new();
    let publisher = place.broker.publisher().await.unwrap();
    let mut number = 0;
    for direction in [Direction::ToClient, Direction::ToServer] {
        for bytes in [0, 1, 7, 20, 50, 100, 101, 102, 200, 500, 2000] {
            let cut = place.proxy.cut_after_bytes(direction, bytes);
            let batch = number..number + 30;
            number += 30;
            let (publisher, to) = (&*publisher, || place.direct.destination());
            let publishes = batch.map(|n| {
                let sending = send(publisher, to(), Message::new(n.to_string()));
                async move { (n, sending.await) }
            });
            for (n, answer) in join_all(publishes).await {
                match answer {
                    Ok(_) => drop(confirmed.insert(n.to_string())),
                    Err(PublishError::Unknown { .. }) => {}
                    Err(error) => panic!("{n}: {error:?}"),
                }
            }
            cut.disarm();
            let last = number.to_string();
            number += 1;
            send(publisher, to(), Message::new(last.clone())).await.unwrap();
            confirmed.insert(last);
        }
    }
    let mut source = place.direct.source().await;
    let mut there = HashSet::new();
    while let Ok(batch) = timeout(Duration::from_secs(1), source.recv(100)).await {
        for delivery in batch.unwrap() {
            assert!(there.insert(text(&delivery)), "one publish made two copies");
            ack(delivery).await.unwrap();
        }
    }
    let lost: Vec<_> = confirmed.difference(&there).collect();
    assert!(lost.is_empty(), "confirmed and not there: {lost:?}");
}

#[tokio::test]
async fn a_confirm_that_is_lost_is_unknown_and_the_message_is_there_once() {
    let place = Proxied::new("lostconfirm").await;
    let publisher = place.broker.publisher().await.unwrap();
    // basic.ack
    let lost = place.proxy.cut_before(Direction::ToClient, Pattern::bytes(*b"\0\x3c\0\x50"));
    let answer = send(&*publisher, place.direct.destination(), Message::new("once")).await;
    assert!(matches!(answer, Err(PublishError::Unknown { .. })), "{answer:?}");
    timeout(PATIENCE, lost.fired()).await.expect("it was the confirm that was lost");
    let mut source = place.direct.source().await;
    assert_eq!(text(&one(&mut source).await), "once");
    nothing(&mut source).await;
}

#[tokio::test]
async fn stale_ackers_are_lost_and_send_nothing() {
    let place = Proxied::new("stale").await;
    place.direct.publish(0..4).await;
    let mut source = place.source().await;
    let stale = many(&mut source, 4).await;
    place.proxy.cut();
    // The same tags again, on the next channel.
    let fresh = many(&mut source, 4).await;
    let sent = place.proxy.counts().to_server;
    for (n, delivery) in stale.into_iter().enumerate() {
        assert!(delivery.is_lost());
        let answer = if n % 2 == 0 { ack(delivery).await } else { delivery.give_back(Redelivery::Now).await };
        assert!(matches!(answer, Err(SettleError::Lost { .. })), "{answer:?}");
    }
    nothing(&mut source).await;
    assert_eq!(place.proxy.counts().to_server, sent, "something was sent for a stale acker");
    for delivery in fresh {
        ack(delivery).await.unwrap();
    }
    source.close().await.unwrap();
    nothing(&mut place.direct.source().await).await;
}

#[tokio::test]
async fn what_is_held_is_dropped_with_its_generation() {
    let place = Proxied::new("held").await;
    place.direct.publish([1]).await;
    let mut source = place.source().await;
    one(&mut source).await.give_back(Redelivery::After(Duration::from_millis(300))).await.unwrap();
    place.proxy.cut();
    // Once, from the broker; not a second time from the client.
    let again = one(&mut source).await;
    assert_eq!(again.redelivered, aftercommit_core::Redelivered::Yes);
    nothing(&mut source).await;
    nothing(&mut source).await;
    ack(again).await.unwrap();
}

#[tokio::test]
async fn readiness_tells_the_truth_in_an_outage() {
    let place = Proxied::new("ready").await;
    let mut source = place.source().await;
    let health = source.health();
    assert!(health.is_up());
    place.proxy.refuse();
    place.proxy.cut();
    until_down(&health).await;
    place.direct.publish([1]).await;
    nothing(&mut source).await;
    let reason = health.reason().unwrap();
    assert!(reason.contains("127.0.0.1") && !reason.contains("guest"), "{reason}");
    let back = Instant::now();
    place.proxy.accept().unwrap();
    until_up(&health).await;
    assert!(back.elapsed() < Duration::from_secs(4), "it took {:?}", back.elapsed());
    ack(one(&mut source).await).await.unwrap();
    source.close().await.unwrap();
    assert!(!health.is_up());
}

#[tokio::test]
async fn a_silent_peer_is_noticed_by_its_heartbeat() {
    let heartbeat = Duration::from_secs(1);
    let place = Proxied::with("silent", |config| config.with_heartbeat(heartbeat).unwrap()).await;
    let mut source = place.source().await;
    let health = source.health();
    place.proxy.blackhole();
    let since = Instant::now();
    until_down(&health).await;
    assert!(since.elapsed() < heartbeat * 6, "it took {:?}", since.elapsed());
    place.proxy.end_blackhole();
    until_up(&health).await;
    place.direct.publish([1]).await;
    ack(one(&mut source).await).await.unwrap();
}

/// Each attempt costs lapin a thread and a socket: without an end they would pile up in an outage.
#[tokio::test]
async fn connections_that_never_answer_are_closed() {
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://{}", mute.local_addr().unwrap());
    let config = Config::new(&url).unwrap().with_connect_timeout(Duration::from_millis(200)).unwrap();
    for _ in 0..3 {
        let (error, accepted) = tokio::join!(aftercommit_rabbitmq::connect(config.clone()), mute.accept());
        assert!(error.err().unwrap().is_retryable());
        let mut header = Vec::new();
        let closed = timeout(PATIENCE, accepted.unwrap().0.read_to_end(&mut header)).await;
        assert!(closed.is_ok(), "the connection is still open");
        assert_eq!(header, b"AMQP\x00\x00\x09\x01");
    }
}

#[tokio::test]
async fn a_publish_without_an_answer_ends_by_its_deadline() {
    let deadline = Duration::from_millis(700);
    let place = Proxied::with("deadline", |config| config.with_publish_deadline(deadline).unwrap()).await;
    let publisher = place.broker.publisher().await.unwrap();
    send(&*publisher, place.direct.destination(), Message::new("before")).await.unwrap();
    place.proxy.blackhole();
    let since = Instant::now();
    let answers =
        join_all((0..5).map(|_| send(&*publisher, place.direct.destination(), Message::new("x")))).await;
    assert!(since.elapsed() < deadline * 2, "it took {:?}", since.elapsed());
    for answer in answers {
        assert!(matches!(answer, Err(PublishError::Unknown { .. })), "{answer:?}");
    }
    place.proxy.end_blackhole();
    // The broker owes the answers of before: the publisher gives that connection up by itself.
    until_sent(&*publisher, &place).await;
}

async fn until_sent(publisher: &dyn aftercommit_core::Publisher, place: &Proxied) {
    let deadline = Instant::now() + PATIENCE;
    while send(publisher, place.direct.destination(), Message::new("after")).await.is_err() {
        assert!(Instant::now() < deadline, "the publisher does not come back");
    }
}
