use aftercommit_core::{
    Broker as _, Destination, HeaderValue, Message, Outgoing, PublishError, Severity, Subscription,
};
use aftercommit_sqlqueue::{Config, SqlQueue};
use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

use crate::support::{World, ack, body, take};

#[tokio::test]
async fn nothing_of_an_envelope_is_lost() {
    let world = World::new().await;
    let mut sent = Message::new(&b""[..]).with_id(&b"\x00\xff"[..]).with_type("a\0b").with_key(&b""[..]);
    sent.schema_version = Some(String::new());
    sent.trace_id = Some("\0".to_owned());
    sent.correlation_id = Some("größer".to_owned());
    sent.headers.append("nan", HeaderValue::F64(f64::from_bits(0x7ff8_0000_0000_0001)));
    sent.headers.append("", HeaderValue::text("\0"));
    let date = PrimitiveDateTime::new(
        Date::from_calendar_date(-3, Month::February, 1).unwrap(),
        Time::from_hms_nano(1, 2, 3, 456_789_012).unwrap(),
    );
    sent.occurred_at = Some(date.assume_offset(UtcOffset::from_hms(-5, -30, -7).unwrap()));
    world.publish(sent.clone()).await.unwrap();
    let mut source = world.source().await;
    let delivery = take(&mut source).await;
    let came = Message::clone(&delivery.message);
    let plain = |message: &Message| {
        let mut message = message.clone();
        message.origin = Default::default();
        format!("{message:?}")
    };
    assert_eq!(plain(&came), plain(&sent));
    assert_eq!(came.occurred_at.unwrap().offset(), sent.occurred_at.unwrap().offset());
    ack(delivery).await.unwrap();
}

/// A row that another program wrote is handed out, whatever it says.
#[tokio::test]
async fn rows_of_others_break_nothing() {
    let world = World::new().await;
    world
        .tamper(
            "INSERT INTO aftercommit_queue_messages (position, queue) \
             SELECT 1, id FROM aftercommit_queue_queues WHERE name = 'orders'; \
             INSERT INTO aftercommit_queue_contents \
             (position, published_at, exchange, routing_key, headers, event_type, body) \
             VALUES (1, 0, '', 'orders', '{not json', CAST(x'ff' AS TEXT), x'31')",
        )
        .await;
    let mut source = world.source().await;
    let delivery = take(&mut source).await;
    assert_eq!(body(&delivery), b"1");
    assert_eq!(delivery.message.event_type.as_deref(), Some("\u{fffd}"));
    let kept = delivery.message.headers.get("aftercommit-unreadable-headers");
    assert_eq!(kept, Some(&HeaderValue::text("{not json")));
    ack(delivery).await.unwrap();
}

#[tokio::test]
async fn routes_are_by_whole_key_or_by_every_key_and_one_copy_for_each_queue() {
    let world = World::new().await;
    let every = Subscription::new("audit", "all").unwrap().with_binding("events", "#");
    let every = every.with_binding("events", "created").with_binding("", "all");
    world.queue.declare(&every).await.unwrap();
    let send = async |name: &str, key: &str| {
        let to = Destination::new(name).with_routing_key(key);
        world.publisher.publish(Outgoing::new(to, Message::new("x"))).await
    };
    send("events", "created").await.unwrap();
    send("events", "Created").await.unwrap();
    send("", "all").await.unwrap();
    assert!(matches!(send("", "nobody").await, Err(PublishError::Unroutable { .. })));
    assert!(matches!(send("nowhere", "x").await, Err(PublishError::Refused { later: true, .. })));
    assert_eq!(world.queue.depth("orders").await.unwrap().ready, 1);
    assert_eq!(world.queue.depth("all").await.unwrap().ready, 3);
    assert_eq!(world.queue.check(&every).await.unwrap(), []);
    let error = world.queue.depth("nowhere").await.unwrap_err().to_string();
    assert!(error.contains("queue nowhere"), "{error}");
}

#[tokio::test]
async fn headers_count_for_the_size_and_must_not_be_too_deep() {
    let world = World::with(|config| config.with_max_message_size(1000).unwrap()).await;
    let mut large = Message::new("small");
    large.headers.append("large", HeaderValue::text("x".repeat(1000)));
    assert!(matches!(world.publish(large).await, Err(PublishError::TooLarge { .. })));
    let mut deep = Message::new("deep");
    let nested = (0..40).fold(HeaderValue::Null, |inner, _| HeaderValue::List(vec![inner]));
    deep.headers.append("nested", nested);
    assert!(matches!(world.publish(deep).await, Err(PublishError::Refused { later: false, .. })));
}

#[tokio::test]
async fn a_file_with_other_tables_is_warned_of() {
    let world = World::new().await;
    assert_eq!(world.queue.check(&world.subscription).await.unwrap(), []);
    world.tamper("CREATE TABLE orders (id INTEGER PRIMARY KEY)").await;
    let findings = world.queue.check(&world.subscription).await.unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].severity, Severity::Warn);
    assert!(findings[0].to_string().contains("file of its own"), "{findings:?}");
}

#[tokio::test]
async fn a_newer_file_is_refused() {
    let world = World::new().await;
    world.tamper("INSERT INTO aftercommit_queue_versions (version, name) VALUES (1000, 'later')").await;
    let error = SqlQueue::connect(Config::at(world.path()).unwrap()).await.unwrap_err();
    assert!(!error.is_retryable() && error.to_string().contains("newer"), "{error}");
}
