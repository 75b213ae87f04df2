use aftercommit_core::{HeaderValue, Headers, Message, Origin};
use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::ShortString;

use super::value::table_in;
use super::{envelope, is_command, native, own};

/// A delivery as a message. `raw_id` is the id as the wire had it where that was not text.
pub(crate) fn incoming(delivery: lapin::message::Delivery, raw_id: Option<Bytes>) -> Message {
    let properties = &delivery.properties;
    let mut headers = properties.headers().as_ref().map(table_in).unwrap_or_default();
    headers.remove(own::NONCE);
    let absent = headers.remove(own::ABSENT_BODY).is_some() && delivery.data.is_empty();
    let carried_id = headers.remove(own::RAW_ID).as_ref().and_then(HeaderValue::as_bytes);

    let mut message = Message::default();
    message.id = raw_id.or(carried_id).or_else(|| properties.message_id().as_ref().map(bytes));
    message.event_type = properties.kind().as_ref().map(ShortString::to_string);
    message.correlation_id = properties.correlation_id().as_ref().map(ShortString::to_string);
    message.commands = commands(properties, &mut headers);
    message.headers = headers;
    message.native = native_of(properties);
    message.body = (!absent).then(|| Bytes::from(delivery.data));
    message.origin = Origin {
        destination: delivery.exchange.to_string(),
        routing_key: Some(delivery.routing_key.to_string()),
        position: None,
    };
    envelope::read(&mut message);
    message
}

fn bytes(text: &ShortString) -> Bytes {
    Bytes::copy_from_slice(text.as_str().as_bytes())
}

fn commands(properties: &BasicProperties, headers: &mut Headers) -> Headers {
    let mut commands = Headers::new();
    headers.retain(|name, value| {
        let command = is_command(name);
        if command {
            commands.append(name, value.clone());
        }
        !command
    });
    for (name, value) in [("expiration", properties.expiration()), ("user_id", properties.user_id())] {
        if let Some(value) = value {
            commands.append(name, HeaderValue::ShortText(value.to_string()));
        }
    }
    commands
}

fn native_of(properties: &BasicProperties) -> Headers {
    let mut kept = Headers::new();
    for (name, value) in [
        (native::CONTENT_TYPE, properties.content_type()),
        (native::CONTENT_ENCODING, properties.content_encoding()),
        (native::REPLY_TO, properties.reply_to()),
        (native::APP_ID, properties.app_id()),
        (native::CLUSTER_ID, properties.cluster_id()),
    ] {
        if let Some(value) = value {
            kept.append(name, HeaderValue::ShortText(value.to_string()));
        }
    }
    for (name, value) in
        [(native::DELIVERY_MODE, properties.delivery_mode()), (native::PRIORITY, properties.priority())]
    {
        if let Some(value) = value {
            kept.append(name, HeaderValue::U8(*value));
        }
    }
    if let Some(seconds) = properties.timestamp() {
        kept.append(native::TIMESTAMP, HeaderValue::Timestamp(*seconds));
    }
    kept
}
