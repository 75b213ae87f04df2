//! Messages as rows, and back.

mod headers;

use aftercommit_core::{Headers, Message, Origin};
use bytes::Bytes;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use time::{OffsetDateTime, UtcOffset};

pub(crate) use headers::TooDeep;

/// Where headers stand that cannot be read, as they were found.
const UNREADABLE: &str = "aftercommit-unreadable-headers";

/// A message on its way into a table: everything but its body is encoded.
pub(crate) struct Envelope {
    pub(crate) message: Message,
    pub(crate) headers: Option<String>,
    pub(crate) native: Option<String>,
}

impl Envelope {
    pub(crate) fn new(message: Message) -> Result<Self, TooDeep> {
        let headers = headers::encode(&message.headers)?;
        let native = headers::encode(&message.native)?;
        Ok(Self { message, headers, native })
    }

    /// Bytes of everything that is kept.
    pub(crate) fn size(&self) -> usize {
        let message = &self.message;
        let bytes =
            [&message.id, &message.key, &message.body].map(|part| part.as_ref().map_or(0, Bytes::len));
        let texts = [
            &message.event_type,
            &message.schema_version,
            &message.aggregate_id,
            &message.trace_id,
            &message.correlation_id,
            &self.headers,
            &self.native,
        ];
        let texts = texts.map(|text| text.as_ref().map_or(0, String::len));
        bytes.into_iter().chain(texts).sum()
    }

    /// Seconds, nanoseconds and offset.
    pub(crate) fn occurred(&self) -> Option<(i64, u32, i32)> {
        self.message.occurred_at.map(|at| (at.unix_timestamp(), at.nanosecond(), at.offset().whole_seconds()))
    }
}

/// The message of a row with the envelope's columns. Never fails: a row that somebody else wrote is handed out as far as
/// it can be understood.
pub(crate) fn decode(row: &SqliteRow) -> Message {
    let mut message = Message::default();
    message.id = bytes(row, "message_id");
    message.event_type = text(row, "event_type");
    message.schema_version = text(row, "schema_version");
    message.aggregate_id = text(row, "aggregate_id");
    message.trace_id = text(row, "trace_id");
    message.correlation_id = text(row, "correlation_id");
    message.occurred_at = occurred(row);
    message.key = bytes(row, "key");
    message.headers = headers(row, "headers");
    message.native = headers(row, "native");
    message.body = bytes(row, "body");
    message.origin = Origin {
        destination: text(row, "exchange").unwrap_or_default(),
        routing_key: text(row, "routing_key"),
        position: number(row, "position").map(|position| position.to_string()),
    };
    message
}

fn bytes(row: &SqliteRow, column: &str) -> Option<Bytes> {
    row.try_get_unchecked::<Option<Vec<u8>>, _>(column).ok().flatten().map(Bytes::from)
}

/// SQLite does not check that a text is UTF-8.
fn text(row: &SqliteRow, column: &str) -> Option<String> {
    let bytes = row.try_get_unchecked::<Option<Vec<u8>>, _>(column).ok().flatten()?;
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

fn number(row: &SqliteRow, column: &str) -> Option<i64> {
    row.try_get::<Option<i64>, _>(column).ok().flatten()
}

fn headers(row: &SqliteRow, column: &str) -> Headers {
    let Some(text) = text(row, column) else { return Headers::new() };
    headers::decode(&text).unwrap_or_else(|| {
        let mut headers = Headers::new();
        headers.append(UNREADABLE, text);
        headers
    })
}

fn occurred(row: &SqliteRow) -> Option<OffsetDateTime> {
    let at = OffsetDateTime::from_unix_timestamp(number(row, "occurred_at")?).ok()?;
    let nanos = number(row, "occurred_nanos").and_then(|nanos| u32::try_from(nanos).ok()).unwrap_or_default();
    let offset = number(row, "occurred_offset").and_then(|offset| i32::try_from(offset).ok());
    let offset = UtcOffset::from_whole_seconds(offset.unwrap_or_default()).ok()?;
    at.replace_nanosecond(nanos).ok()?.checked_to_offset(offset)
}
