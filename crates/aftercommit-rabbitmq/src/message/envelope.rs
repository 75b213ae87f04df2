//! Envelope fields that travel as headers. Reading is one function per field, so that the publisher
//! can tell whether the headers already say what the field says.

use aftercommit_core::{HeaderValue, Headers, Message};
use bytes::Bytes;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::native;

const SCHEMA_VERSION: &str = "schemaVersion";
const AGGREGATE_ID: &str = "aggregateId";
const TRACE_ID: &str = "traceId";
const TRACEPARENT: &str = "traceparent";
const OCCURRED_AT: &str = "occurredAt";
const KEY: &str = "key";

/// Fills the fields from headers and native properties.
pub(super) fn read(message: &mut Message) {
    message.schema_version = text(&message.headers, SCHEMA_VERSION);
    message.aggregate_id = text(&message.headers, AGGREGATE_ID);
    message.trace_id = trace_id(&message.headers);
    message.occurred_at = occurred_at(&message.headers, &message.native);
    message.key = key(&message.headers);
}

/// Writes the fields that the headers do not say already. A header that says the same in another
/// type keeps its type.
pub(super) fn write(message: &Message, headers: &mut Headers) {
    let said = &message.headers;
    for (name, field, said) in [
        (SCHEMA_VERSION, &message.schema_version, text(said, SCHEMA_VERSION)),
        (AGGREGATE_ID, &message.aggregate_id, text(said, AGGREGATE_ID)),
        (TRACE_ID, &message.trace_id, trace_id(said)),
    ] {
        if let Some(value) = field
            && said.as_ref() != Some(value)
        {
            headers.set(name, value.as_str());
        }
    }
    if let Some(at) = message.occurred_at
        && occurred_at(&message.headers, &message.native) != Some(at)
        && let Ok(at) = at.format(&Rfc3339)
    {
        headers.set(OCCURRED_AT, at);
    }
    // The aggregate id just written may be the key already.
    if let Some(bytes) = &message.key
        && key(headers).as_ref() != Some(bytes)
    {
        headers.set(KEY, HeaderValue::Text(bytes.clone()));
    }
}

fn text(headers: &Headers, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

fn trace_id(headers: &Headers) -> Option<String> {
    text(headers, TRACE_ID).or_else(|| {
        // W3C trace context: version "-" 32 hex digits "-" …
        let mut parts = headers.get(TRACEPARENT)?.as_str()?.split('-');
        let id = parts.nth(1)?;
        (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
    })
}

fn occurred_at(headers: &Headers, properties: &Headers) -> Option<OffsetDateTime> {
    headers.get(OCCURRED_AT).and_then(time_of).or_else(|| properties.get(native::TIMESTAMP).and_then(time_of))
}

fn time_of(value: &HeaderValue) -> Option<OffsetDateTime> {
    match value {
        HeaderValue::Timestamp(seconds) => {
            OffsetDateTime::from_unix_timestamp(i64::try_from(*seconds).ok()?).ok()
        }
        other => OffsetDateTime::parse(other.as_str()?, &Rfc3339).ok(),
    }
}

fn key(headers: &Headers) -> Option<Bytes> {
    let aggregate = || text(headers, AGGREGATE_ID).map(Bytes::from);
    headers.get(KEY).and_then(HeaderValue::as_bytes).or_else(aggregate)
}
