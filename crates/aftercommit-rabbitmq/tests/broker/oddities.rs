//! What only raw frames can send.

use aftercommit_core::{HeaderValue, IdPolicy, Redelivered};
use futures_util::StreamExt;

use crate::raw::{RawMessage, RawPublisher, entry, long, short};
use crate::support::{Queue, ack, nothing, one, text};

fn nested(depth: usize) -> Vec<u8> {
    let mut value = entry(b"leaf", b'I', &7_u32.to_be_bytes());
    for _ in 0..depth {
        value = entry(b"", b'F', &long(&value));
    }
    value
}

fn odd_ones(queue: &str) -> Vec<RawMessage> {
    let to = || RawMessage { routing_key: queue.into(), ..RawMessage::default() };
    vec![
        RawMessage { message_id: Some(b"\xff\xfe-1".to_vec()), ..to() },
        RawMessage { message_id: Some(b"\xff\xfd-1".to_vec()), ..to() },
        RawMessage { event_type: Some(b"\xc3".to_vec()), correlation_id: Some(b"\x80".to_vec()), ..to() },
        RawMessage { headers: entry(b"na\xffme", b't', &[1]), ..to() },
        RawMessage { headers: entry(b"text", b'S', &long(b"\xff\xfe")), ..to() },
        RawMessage { headers: nested(5), ..to() },
        RawMessage { headers: nested(100), ..to() },
        RawMessage { headers: nested(15_000), ..to() },
        RawMessage { headers: entry(b"huge", b'l', &[0xff; 8]), ..to() },
        RawMessage { headers: entry(b"time", b'T', &[0xff; 8]), ..to() },
        RawMessage {
            headers: [entry(b"twice", b'I', &[0; 4]), entry(b"twice", b'I', &[1; 4])].concat(),
            ..to()
        },
        RawMessage { headers: entry(b"", b'V', &[]), ..to() },
    ]
}

#[tokio::test]
async fn odd_frames_are_delivered_on_one_subscription_and_break_nothing() {
    for queue in [Queue::new("odd").await, Queue::classic("odd").await] {
        let mut source = queue.source().await;
        let odd = odd_ones(&queue.subscription.source);
        let count = odd.len();
        let name = queue.subscription.source.clone();
        tokio::task::spawn_blocking(move || {
            let mut raw = RawPublisher::connect();
            for (n, mut message) in odd.into_iter().enumerate() {
                message.body = n.to_string().into_bytes();
                raw.publish("", &message).unwrap_or_else(|error| panic!("{n}: {error}"));
            }
            let last =
                RawMessage { routing_key: name.into(), body: b"last".to_vec(), ..RawMessage::default() };
            raw.publish("", &last).unwrap();
        })
        .await
        .unwrap();
        let mut deliveries = Vec::new();
        for _ in 0..=count {
            let delivery = one(&mut source).await;
            assert_eq!(delivery.redelivered, Redelivered::No, "the subscription was lost over {delivery:?}");
            deliveries.push(delivery);
        }
        assert_eq!(text(&deliveries[count]), "last");
        let message = |n: usize| &deliveries[n].message;
        assert_eq!(message(0).id.as_deref(), Some(&b"\xff\xfe-1"[..]));
        assert_eq!(message(1).id.as_deref(), Some(&b"\xff\xfd-1"[..]), "ids that are not text stay apart");
        assert!(IdPolicy::default().resolve(message(0)).is_err());
        assert_eq!(message(2).event_type.as_deref(), Some("?"));
        assert_eq!(message(3).headers.get("na?me"), Some(&HeaderValue::Bool(true)));
        assert_eq!(message(4).headers.get("text"), Some(&HeaderValue::Text((&b"\xff\xfe"[..]).into())));
        assert!(matches!(message(5).headers.get(""), Some(HeaderValue::Table(_))));
        assert!(matches!(message(8).headers.get("huge"), Some(HeaderValue::I64(-1))));
        assert_eq!(message(11).headers.get(""), Some(&HeaderValue::Null));
        for delivery in deliveries {
            ack(delivery).await.unwrap();
        }
        nothing(&mut source).await;
    }
}

#[tokio::test]
async fn a_routing_key_that_is_not_text_is_delivered() {
    let mut queue = Queue::new("oddkey").await;
    let exchange = crate::support::unique("odd.exchange");
    queue.subscription = queue.subscription.clone().with_binding(&exchange, "#");
    queue.broker.declare(&queue.subscription).await.unwrap();
    let mut source = queue.source().await;
    tokio::task::spawn_blocking(move || {
        let odd = RawMessage { routing_key: b"a.\xff".to_vec(), ..RawMessage::default() };
        RawPublisher::connect().publish(&exchange, &odd).unwrap();
    })
    .await
    .unwrap();
    let delivery = one(&mut source).await;
    assert_eq!(delivery.message.origin.routing_key.as_deref(), Some("a.?"));
    ack(delivery).await.unwrap();
}

#[tokio::test]
async fn values_that_nobody_can_read_are_refused_by_the_broker() {
    let queue = Queue::new("unknown").await;
    let name = queue.subscription.source.clone();
    tokio::task::spawn_blocking(move || {
        let cut = [short(b"cut"), b"S".to_vec(), 100_u32.to_be_bytes().to_vec()].concat();
        for headers in [entry(b"n", b'z', &[0, 0]), entry(b"n", b'U', &[0, 0]), cut] {
            let message = RawMessage { routing_key: name.clone().into(), headers, ..RawMessage::default() };
            RawPublisher::connect().publish("", &message).unwrap_err();
        }
    })
    .await
    .unwrap();
}

/// Why there is a filter under lapin. When this fails, lapin has become able to read such messages.
#[tokio::test]
async fn lapin_alone_loses_its_connection_over_such_a_message() {
    let queue = Queue::new("alone").await;
    let name = queue.subscription.source.clone();
    let odd = RawMessage {
        message_id: Some(b"\xff".to_vec()),
        routing_key: name.clone().into(),
        ..RawMessage::default()
    };
    tokio::task::spawn_blocking(move || RawPublisher::connect().publish("", &odd).unwrap()).await.unwrap();
    let url = xtask::services::rabbitmq::url().unwrap();
    let connection = lapin::Connection::connect(&url, lapin::ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let options = lapin::options::BasicConsumeOptions::default();
    let table = lapin::types::FieldTable::default();
    let mut consumer = channel.basic_consume(name.as_str().into(), "".into(), options, table).await.unwrap();
    let next = consumer.next().await.unwrap();
    assert!(next.is_err(), "lapin can read it: {next:?}");
    assert!(!connection.status().connected());
}
