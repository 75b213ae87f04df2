use std::collections::BTreeMap;

use aftercommit_core::{Destination, HeaderValue, Headers, Message, Outgoing};
use bytes::Bytes;
use lapin::protocol::basic::gen_properties;
use proptest::prelude::*;
use time::OffsetDateTime;

use super::*;

fn value() -> impl Strategy<Value = HeaderValue> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    let leaf = prop_oneof![
        Just(HeaderValue::Null),
        any::<bool>().prop_map(HeaderValue::Bool),
        any::<i8>().prop_map(HeaderValue::I8),
        any::<u8>().prop_map(HeaderValue::U8),
        any::<i16>().prop_map(HeaderValue::I16),
        any::<u16>().prop_map(HeaderValue::U16),
        any::<i32>().prop_map(HeaderValue::I32),
        any::<u32>().prop_map(HeaderValue::U32),
        any::<i64>().prop_map(HeaderValue::I64),
        any::<f32>().prop_map(HeaderValue::F32),
        any::<f64>().prop_map(HeaderValue::F64),
        (any::<u8>(), any::<u32>()).prop_map(|(scale, value)| HeaderValue::Decimal { scale, value }),
        bytes().prop_map(HeaderValue::Text),
        bytes().prop_map(HeaderValue::Bytes),
        any::<u64>().prop_map(HeaderValue::Timestamp),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(HeaderValue::List),
            table(inner).prop_map(HeaderValue::Table),
        ]
    })
}

/// Unique names in the order of the wire, which is lapin's: sorted.
fn table(value: impl Strategy<Value = HeaderValue>) -> impl Strategy<Value = Headers> {
    prop::collection::btree_map("h-.{0,8}", value, 0..4).prop_map(|map| map.into_iter().collect())
}

fn text() -> impl Strategy<Value = Option<String>> {
    prop::option::of(".{1,20}")
}

prop_compose! {
    fn message()(
        id in prop::option::of(prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)),
        fields in [text(), text(), text(), text(), text()],
        seconds in prop::option::of(0_i64..4_000_000_000),
        key in prop::option::of(prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from)),
        headers in table(value()),
        native in (text(), prop::option::of(any::<u8>()), prop::option::of(any::<u64>())),
        body in prop::option::of(prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)),
    ) -> Message {
        let mut message = Message::default();
        let [event_type, schema_version, aggregate_id, trace_id, correlation_id] = fields;
        message.id = id;
        message.event_type = event_type;
        message.schema_version = schema_version;
        message.aggregate_id = aggregate_id;
        message.trace_id = trace_id;
        message.correlation_id = correlation_id;
        message.occurred_at = seconds.map(|s| OffsetDateTime::from_unix_timestamp(s).unwrap());
        message.key = key;
        message.headers = headers;
        message.body = body;
        let (content_type, priority, timestamp) = native;
        if let Some(text) = content_type {
            message.native.append("content_type", HeaderValue::ShortText(text));
        }
        if let Some(priority) = priority {
            message.native.append("priority", HeaderValue::U8(priority));
        }
        if let Some(seconds) = timestamp {
            message.native.append("timestamp", HeaderValue::Timestamp(seconds));
        }
        message
    }
}

fn over_the_wire(message: &Message) -> (Message, Prepared) {
    let outgoing = Outgoing::new(Destination::new("ex").with_routing_key("rk"), message.clone());
    let prepared = prepare(&outgoing, "nonce").unwrap();
    let (exchange, key) = (prepared.exchange.clone(), prepared.routing_key.clone());
    let mut delivery = lapin::message::Delivery::mock(1, exchange, key, false, prepared.body.to_vec());
    delivery.properties = prepared.properties.clone();
    (incoming(delivery, None), prepared)
}

fn by_name(headers: &Headers) -> BTreeMap<String, String> {
    // As text, because NaN is not equal to itself.
    headers.iter().map(|(name, value)| (name.to_owned(), format!("{value:?}"))).collect()
}

proptest! {
    #[test]
    fn a_message_comes_back_as_it_was_sent(message in message()) {
        let (back, prepared) = over_the_wire(&message);
        prop_assert_eq!(&back.id, &message.id);
        prop_assert_eq!(&back.event_type, &message.event_type);
        prop_assert_eq!(&back.schema_version, &message.schema_version);
        prop_assert_eq!(&back.aggregate_id, &message.aggregate_id);
        prop_assert_eq!(&back.trace_id, &message.trace_id);
        prop_assert_eq!(&back.correlation_id, &message.correlation_id);
        prop_assert_eq!(&back.body, &message.body);
        if message.occurred_at.is_some() {
            prop_assert_eq!(back.occurred_at, message.occurred_at);
        }
        let key = message.key.clone().or_else(|| message.aggregate_id.clone().map(Bytes::from));
        prop_assert_eq!(&back.key, &key);
        let sent = by_name(&message.headers);
        let kept: BTreeMap<_, _> = by_name(&back.headers).into_iter().filter(|(name, _)| sent.contains_key(name)).collect();
        prop_assert_eq!(kept, sent);
        prop_assert!(!back.headers.iter().any(|(name, _)| name.starts_with("aftercommit-")));
        for (name, value) in message.native.iter() {
            prop_assert_eq!(back.native.get(name), Some(value));
        }
        // A second hop adds nothing.
        let (again, _) = over_the_wire(&back);
        prop_assert_eq!(by_name(&again.headers), by_name(&back.headers));
        prop_assert_eq!(by_name(&again.native), by_name(&back.native));

        let written = gen_properties(&prepared.properties)(Vec::new().into()).unwrap().into_inner().1;
        prop_assert_eq!(prepared.header_len as u64, 12 + written);
    }
}

#[test]
fn schema_versions_read_alike_in_every_form_and_keep_it() {
    for value in [
        HeaderValue::text("2"),
        HeaderValue::Bytes("2".into()),
        HeaderValue::I8(2),
        HeaderValue::U8(2),
        HeaderValue::I16(2),
        HeaderValue::U16(2),
        HeaderValue::I32(2),
        HeaderValue::U32(2),
        HeaderValue::I64(2),
    ] {
        let mut message = Message::new("");
        message.headers.append("schemaVersion", value.clone());
        let (back, _) = over_the_wire(&message);
        assert_eq!(back.schema_version.as_deref(), Some("2"), "{value:?}");
        assert_eq!(back.headers.get("schemaVersion"), Some(&value));
        assert_eq!(over_the_wire(&back).0.headers.get("schemaVersion"), Some(&value));
    }
    for value in
        [HeaderValue::F64(2.0), HeaderValue::Null, HeaderValue::List(vec![]), HeaderValue::Bool(true)]
    {
        let mut message = Message::new("");
        message.headers.append("schemaVersion", value.clone());
        let (back, _) = over_the_wire(&message);
        assert_eq!(back.schema_version, None, "a number is never guessed");
        assert_eq!(back.headers.get("schemaVersion"), Some(&value));
    }
}

#[test]
fn the_trace_is_found_in_a_traceparent_too() {
    let mut message = Message::new("");
    message.headers.append("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let (back, _) = over_the_wire(&message);
    assert_eq!(back.trace_id.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(over_the_wire(&back).0.headers, back.headers, "no second header for the same trace");
    message.headers.append("traceId", "trace-1");
    assert_eq!(over_the_wire(&message).0.trace_id.as_deref(), Some("trace-1"));
    let mut broken = Message::new("");
    broken.headers.append("traceparent", "00-0af7-b7ad6b7169203331-01");
    assert_eq!(over_the_wire(&broken).0.trace_id, None);
}

#[test]
fn the_time_is_the_header_or_else_the_timestamp() {
    let mut message = Message::new("");
    message.native.append("timestamp", HeaderValue::Timestamp(86_400));
    let (back, _) = over_the_wire(&message);
    assert_eq!(back.occurred_at.map(OffsetDateTime::unix_timestamp), Some(86_400));
    assert!(over_the_wire(&back).0.headers.get("occurredAt").is_none(), "it is said already");
    message.headers.append("occurredAt", "1970-01-01T00:00:07Z");
    assert_eq!(over_the_wire(&message).0.occurred_at.map(OffsetDateTime::unix_timestamp), Some(7));
    let mut far = Message::new("");
    far.native.append("timestamp", HeaderValue::Timestamp(u64::MAX));
    assert_eq!(over_the_wire(&far).0.occurred_at, None, "no panic, and nothing invented");
}

#[test]
fn what_commands_a_broker_comes_in_as_commands_and_is_never_sent() {
    let names = ["x-death", "x-first-death-queue", "x-last-death-reason", "x-delivery-count", "CC", "BCC"];
    let mut delivery = lapin::message::Delivery::mock(1, "".into(), "q".into(), true, vec![]);
    let mut table = lapin::types::FieldTable::default();
    for name in names.iter().chain(&["foreign"]) {
        table.insert((*name).into(), lapin::types::AMQPValue::LongLongInt(7));
    }
    delivery.properties = lapin::BasicProperties::default()
        .with_headers(table)
        .with_expiration("1000".into())
        .with_user_id("mallory".into());
    let message = incoming(delivery, None);
    for name in names.iter().chain(&["expiration", "user_id"]) {
        assert!(message.commands.get(name).is_some(), "{name}");
        assert!(message.headers.get(name).is_none(), "{name}");
    }
    let (back, prepared) = over_the_wire(&message);
    assert!(back.commands.is_empty());
    assert_eq!(back.headers.get("foreign"), Some(&HeaderValue::I64(7)));
    assert!(prepared.properties.expiration().is_none() && prepared.properties.user_id().is_none());

    for name in names {
        let mut message = Message::new("");
        message.headers.append(name, "other.queue");
        let outgoing = Outgoing::new(Destination::new("ex"), message);
        assert!(matches!(prepare(&outgoing, "nonce"), Err(Unsendable::Command(_))), "{name}");
    }
}

#[test]
fn what_goes_out_is_persistent_whatever_it_was() {
    let mut message = Message::new("");
    message.native.append("delivery_mode", HeaderValue::U8(1));
    assert_eq!(over_the_wire(&message).1.properties.delivery_mode(), &Some(2));
}

#[test]
fn an_id_that_is_not_text_travels_beside_its_place() {
    let message = Message::new("").with_id(&b"\xff\xfe"[..]);
    let (back, prepared) = over_the_wire(&message);
    assert_eq!(prepared.properties.message_id(), &None);
    assert_eq!(back.id.as_deref(), Some(&b"\xff\xfe"[..]));
}

#[test]
fn properties_of_another_product_are_left_out() {
    let mut message = Message::new("");
    message.native.append("timestamp", HeaderValue::I64(1));
    message.native.append("priority", HeaderValue::I64(1_000));
    message.native.append("content_type", HeaderValue::Bytes(Bytes::from_static(b"\xff")));
    let (_, prepared) = over_the_wire(&message);
    assert_eq!(prepared.properties.timestamp(), &None);
    assert_eq!(prepared.properties.priority(), &None);
    assert_eq!(prepared.properties.content_type(), &None);
}

#[test]
fn headers_nested_deeper_than_we_take_in_are_refused() {
    for (depth, sendable) in [(62, true), (63, true), (64, false), (500, false)] {
        for table in [false, true] {
            let mut value = HeaderValue::Null;
            for _ in 0..depth {
                value = match table {
                    true => HeaderValue::Table([("n".to_owned(), value)].into_iter().collect()),
                    false => HeaderValue::List(vec![value]),
                };
            }
            let mut message = Message::new("");
            message.headers.append("deep", value);
            let outgoing = Outgoing::new(Destination::new("ex"), message);
            assert_eq!(prepare(&outgoing, "nonce").is_ok(), sendable, "{depth}");
        }
    }
}
