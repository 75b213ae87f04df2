use aftercommit_core::{HeaderValue, Headers, Message, Outgoing};
use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::ShortString;

use super::value::{short, table_len, table_out};
use super::{envelope, is_command, native, own};

/// A message ready to be written: every length is checked, so that nothing in the client panics or
/// makes the broker close the channel.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) exchange: ShortString,
    pub(crate) routing_key: ShortString,
    pub(crate) properties: BasicProperties,
    pub(crate) body: Bytes,
    /// The bytes of the content header frame's payload.
    pub(crate) header_len: usize,
}

/// Why a message has no form in AMQP.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error("{what} has {found} bytes, the most is 255")]
    TooLong { what: &'static str, found: usize },
    #[error("the header {0:?} commands the broker")]
    Command(String),
    #[error("headers are nested more than 64 deep")]
    TooDeep,
    #[error("AMQP has no header value like {0}")]
    Kind(String),
}

/// Maps a message to AMQP under this nonce.
pub(crate) fn prepare(outgoing: &Outgoing, nonce: &str) -> Result<Prepared, Unsendable> {
    let message = &outgoing.message;
    let exchange = short(&outgoing.destination.name, "the exchange's name")?;
    let routing_key = short(&outgoing.destination.routing_key, "the routing key")?;
    let headers = table_out(&headers_of(message, nonce)?)?;
    let mut header_len = 14 + table_len(&headers) + 1;
    let mut text = |value: Option<&str>, what| {
        let text = value.map(|value| short(value, what)).transpose()?;
        header_len += text.as_ref().map_or(0, |text| 1 + text.as_str().len());
        Ok::<_, Unsendable>(text)
    };

    let mut properties = BasicProperties::default().with_headers(headers).with_delivery_mode(2);
    for (value, what, set) in texts(message) {
        if let Some(value) = text(value, what)? {
            properties = set(properties, value);
        }
    }
    if let Some(priority) = message.native.get(native::PRIORITY).and_then(HeaderValue::as_i64)
        && let Ok(priority) = u8::try_from(priority)
    {
        properties = properties.with_priority(priority);
        header_len += 1;
    }
    if let Some(HeaderValue::Timestamp(seconds)) = message.native.get(native::TIMESTAMP) {
        properties = properties.with_timestamp(*seconds);
        header_len += 8;
    }
    let body = message.body.clone().unwrap_or_default();
    Ok(Prepared { exchange, routing_key, properties, body, header_len })
}

fn headers_of(message: &Message, nonce: &str) -> Result<Headers, Unsendable> {
    if let Some((name, _)) = message.headers.iter().find(|(name, _)| is_command(name)) {
        return Err(Unsendable::Command(name.to_owned()));
    }
    let mut headers = message.headers.clone();
    envelope::write(message, &mut headers);
    headers.set(own::NONCE, nonce);
    if message.body.is_none() {
        headers.set(own::ABSENT_BODY, HeaderValue::Bool(true));
    }
    if let Some(id) = &message.id
        && text_id(message).is_none()
    {
        headers.set(own::RAW_ID, HeaderValue::Bytes(id.clone()));
    }
    Ok(headers)
}

/// The id, if it fits `message_id`.
fn text_id(message: &Message) -> Option<&str> {
    std::str::from_utf8(message.id.as_deref()?).ok().filter(|id| id.len() <= 255)
}

type Set = fn(BasicProperties, ShortString) -> BasicProperties;

/// The properties that are short texts. A native property that is not a text is another product's
/// and not ours to restore.
fn texts(message: &Message) -> [(Option<&str>, &'static str, Set); 8] {
    let native = |name| message.native.get(name).and_then(HeaderValue::as_str);
    [
        (text_id(message), "the message id", BasicProperties::with_message_id),
        (message.event_type.as_deref(), "the event type", BasicProperties::with_type),
        (message.correlation_id.as_deref(), "the correlation id", BasicProperties::with_correlation_id),
        (native(native::CONTENT_TYPE), native::CONTENT_TYPE, BasicProperties::with_content_type),
        (native(native::CONTENT_ENCODING), native::CONTENT_ENCODING, BasicProperties::with_content_encoding),
        (native(native::REPLY_TO), native::REPLY_TO, BasicProperties::with_reply_to),
        (native(native::APP_ID), native::APP_ID, BasicProperties::with_app_id),
        (native(native::CLUSTER_ID), native::CLUSTER_ID, BasicProperties::with_cluster_id),
    ]
}
