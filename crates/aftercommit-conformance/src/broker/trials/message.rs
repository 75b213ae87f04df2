//! What is sent comes out: bodies, headers, envelope.

use std::sync::Arc;

use aftercommit_core::dead_letter::HEADER_PREFIX;
use aftercommit_core::{BoxError, HeaderValue, Headers, Message, Origin};
use bytes::Bytes;
use time::OffsetDateTime;

use super::cases;
use crate::broker::scene::{Scene, ack, ensure};
use crate::broker::stage::Stage;

cases! { "message":
    bodies_are_byte_exact,
    an_absent_body_stays_absent [AbsentBody],
    headers_keep_their_types,
    repeated_headers_keep_their_order [RepeatedHeaders],
    the_envelope_comes_back,
    keys_are_byte_exact,
    nothing_is_invented,
    native_properties_come_back [NativeProperties],
    commands_are_not_sent,
    the_origin_is_true,
}

type Done = Result<(), BoxError>;

/// Sends a message and answers it as it came in.
async fn round_trip(scene: &Scene, message: Message) -> Result<Arc<Message>, BoxError> {
    let mut source = scene.source().await?;
    scene.send(message).await?;
    let delivery = scene.take_one(&mut source).await?;
    let came = Arc::clone(&delivery.message);
    ack(delivery).await?;
    scene.close(source).await?;
    Ok(came)
}

/// Sends a message and compares what comes with what the product's page promises.
async fn comes_back(scene: &Scene, message: Message) -> Done {
    let expected = scene.stage.expected(&message);
    let came = round_trip(scene, message).await?;
    same(&expected, &came)
}

pub(super) fn same(expected: &Message, came: &Message) -> Done {
    macro_rules! compare {
        ($($field:ident),+) => {$(
            ensure!(
                came.$field == expected.$field,
                "{} should be {:?} and is {:?}", stringify!($field), expected.$field, came.$field
            );
        )+};
    }
    ensure!(
        came.body == expected.body,
        "the body of {:?} bytes came back changed, with {:?} bytes",
        expected.body.as_ref().map(Bytes::len),
        came.body.as_ref().map(Bytes::len)
    );
    compare!(id, event_type, schema_version, aggregate_id, trace_id, correlation_id, occurred_at, key);
    for (name, value) in expected.native.iter() {
        let came = came.native.get(name);
        ensure!(came == Some(value), "native {name} should be {value:?} and is {came:?}");
    }
    let (expected, came) = (in_order(&expected.headers), in_order(&foreign(&came.headers)));
    ensure!(came == expected, "the headers should be {expected:?} and are {came:?}");
    Ok(())
}

/// Without the headers that are ours, such as a publisher's nonce.
fn foreign(headers: &Headers) -> Headers {
    let mut headers = headers.clone();
    headers.retain(|name, _| !name.starts_with(HEADER_PREFIX));
    headers
}

/// By name, because not every client keeps the order of different names; values of one name keep
/// theirs.
fn in_order(headers: &Headers) -> Vec<(String, HeaderValue)> {
    let mut all: Vec<_> = headers
        .iter()
        .map(|(name, value)| match value {
            HeaderValue::Table(table) => {
                (name.to_owned(), HeaderValue::Table(in_order(table).into_iter().collect()))
            }
            value => (name.to_owned(), value.clone()),
        })
        .collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

async fn bodies_are_byte_exact(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let every_byte: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..1_000_003_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    for body in [Vec::new(), every_byte, vec![0xff, 0xfe, 0], "größer → ∞".into(), large] {
        comes_back(&scene, Message::new(body)).await?;
    }
    Ok(())
}

async fn an_absent_body_stays_absent(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message = Message::new("").with_id("tombstone");
    message.body = None;
    comes_back(&scene, message).await
}

async fn headers_keep_their_types(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message = Message::new("with headers");
    message.headers = every_type();
    let nested = HeaderValue::Table(message.headers.clone());
    let deep = (0..4).fold(nested, |inner, level| {
        HeaderValue::Table([(format!("level {level}"), inner)].into_iter().collect())
    });
    message.headers.append("list", HeaderValue::List(vec![HeaderValue::U8(1), HeaderValue::text("two")]));
    message.headers.append("empty list", HeaderValue::List(Vec::new()));
    message.headers.append("table", deep);
    comes_back(&scene, message).await
}

/// Every plain form of a header's value.
pub(super) fn every_type() -> Headers {
    [
        ("null", HeaderValue::Null),
        ("bool", HeaderValue::Bool(true)),
        ("i8", HeaderValue::I8(-8)),
        ("u8", HeaderValue::U8(200)),
        ("i16", HeaderValue::I16(-1600)),
        ("u16", HeaderValue::U16(60_000)),
        ("i32", HeaderValue::I32(-320_000)),
        ("u32", HeaderValue::U32(4_000_000_000)),
        ("i64", HeaderValue::I64(i64::MIN)),
        ("f32", HeaderValue::F32(0.5)),
        ("f64", HeaderValue::F64(-0.1)),
        ("decimal", HeaderValue::Decimal { scale: 2, value: 1999 }),
        ("text", HeaderValue::text("grün")),
        ("no text", HeaderValue::Text(Bytes::from_static(b"\xff\xfe"))),
        ("empty text", HeaderValue::text("")),
        ("short", HeaderValue::ShortText("short".into())),
        ("bytes", HeaderValue::Bytes(Bytes::from_static(b"\x00\x01\xff"))),
        ("timestamp", HeaderValue::Timestamp(1_700_000_000)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

async fn repeated_headers_keep_their_order(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message = Message::new("repeated");
    for value in ["1", "2", "1"] {
        message.headers.append("again", value);
    }
    comes_back(&scene, message).await
}

async fn the_envelope_comes_back(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message =
        Message::new("all fields").with_id(" Evt-4qD329Bz é ").with_type("order.created").with_key("k");
    message.schema_version = Some("3".into());
    message.aggregate_id = Some("order-17".into());
    message.trace_id = Some("4bf92f3577b34da6a3ce929d0e0e4736".into());
    message.correlation_id = Some("conversation-5".into());
    message.occurred_at = Some(OffsetDateTime::from_unix_timestamp(1_700_000_000)?);
    comes_back(&scene, message).await
}

async fn keys_are_byte_exact(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    for key in [&b"order-1"[..], "schlüssel".as_bytes(), b"\x00\xff\xfe"] {
        comes_back(&scene, Message::new("keyed").with_key(Bytes::from_static(key))).await?;
    }
    Ok(())
}

async fn nothing_is_invented(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    comes_back(&scene, Message::new("bare")).await
}

async fn native_properties_come_back(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message = Message::new("native");
    message.native = scene.stage.native();
    ensure!(!message.native.is_empty(), "the stage names no native property: declare the ability absent");
    comes_back(&scene, message).await
}

async fn commands_are_not_sent(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message = Message::new("commanding");
    message.commands.append("x-death", "orders");
    message.commands.append("expiration", "1");
    message.origin = Origin { destination: "forged".into(), ..Origin::default() };
    let came = round_trip(&scene, message).await?;
    ensure!(came.commands.is_empty(), "commands were sent: {:?}", came.commands);
    let headers = foreign(&came.headers);
    ensure!(headers.is_empty(), "commands were sent as headers: {headers:?}");
    Ok(())
}

async fn the_origin_is_true(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let origin = round_trip(&scene, Message::new("from where")).await?.origin.clone();
    ensure!(origin.destination == scene.to.name, "published to {}, the origin says {origin:?}", scene.to);
    let key = origin.routing_key.unwrap_or_default();
    ensure!(
        key == scene.to.routing_key,
        "published with key {}, the origin says {key}",
        scene.to.routing_key
    );
    Ok(())
}
