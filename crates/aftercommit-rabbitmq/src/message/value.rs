//! Header values ↔ AMQP field values.

use aftercommit_core::{HeaderValue, Headers};
use bytes::Bytes;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable, LongString, ShortString};

use super::Unsendable;

pub(super) fn table_in(table: &FieldTable) -> Headers {
    table.into_iter().map(|(name, value)| (name.to_string(), value_in(value))).collect()
}

fn value_in(value: &AMQPValue) -> HeaderValue {
    match value {
        AMQPValue::Boolean(v) => HeaderValue::Bool(*v),
        AMQPValue::ShortShortInt(v) => HeaderValue::I8(*v),
        AMQPValue::ShortShortUInt(v) => HeaderValue::U8(*v),
        AMQPValue::ShortInt(v) => HeaderValue::I16(*v),
        AMQPValue::ShortUInt(v) => HeaderValue::U16(*v),
        AMQPValue::LongInt(v) => HeaderValue::I32(*v),
        AMQPValue::LongUInt(v) => HeaderValue::U32(*v),
        AMQPValue::LongLongInt(v) => HeaderValue::I64(*v),
        AMQPValue::Float(v) => HeaderValue::F32(*v),
        AMQPValue::Double(v) => HeaderValue::F64(*v),
        AMQPValue::DecimalValue(v) => HeaderValue::Decimal { scale: v.scale, value: v.value },
        AMQPValue::ShortString(v) => HeaderValue::ShortText(v.to_string()),
        AMQPValue::LongString(v) => HeaderValue::Text(Bytes::copy_from_slice(v.as_bytes())),
        AMQPValue::FieldArray(v) => HeaderValue::List(v.as_slice().iter().map(value_in).collect()),
        AMQPValue::Timestamp(v) => HeaderValue::Timestamp(*v),
        AMQPValue::FieldTable(v) => HeaderValue::Table(table_in(v)),
        AMQPValue::ByteArray(v) => HeaderValue::Bytes(Bytes::copy_from_slice(v.as_slice())),
        AMQPValue::Void => HeaderValue::Null,
    }
}

/// Tables and arrays inside each other: as many as our source takes in. lapin writes them recursively.
const DEEPEST: usize = 64;

pub(super) fn table_out(headers: &Headers) -> Result<FieldTable, Unsendable> {
    nested_out(headers, 1)
}

fn nested_out(headers: &Headers, depth: usize) -> Result<FieldTable, Unsendable> {
    if depth > DEEPEST {
        return Err(Unsendable::TooDeep);
    }
    let mut table = FieldTable::default();
    for (name, value) in headers.iter() {
        table.insert(short(name, "a header's name")?, value_out(value, depth)?);
    }
    Ok(table)
}

fn value_out(value: &HeaderValue, depth: usize) -> Result<AMQPValue, Unsendable> {
    Ok(match value {
        HeaderValue::Null => AMQPValue::Void,
        HeaderValue::Bool(v) => AMQPValue::Boolean(*v),
        HeaderValue::I8(v) => AMQPValue::ShortShortInt(*v),
        HeaderValue::U8(v) => AMQPValue::ShortShortUInt(*v),
        HeaderValue::I16(v) => AMQPValue::ShortInt(*v),
        HeaderValue::U16(v) => AMQPValue::ShortUInt(*v),
        HeaderValue::I32(v) => AMQPValue::LongInt(*v),
        HeaderValue::U32(v) => AMQPValue::LongUInt(*v),
        HeaderValue::I64(v) => AMQPValue::LongLongInt(*v),
        HeaderValue::F32(v) => AMQPValue::Float(*v),
        HeaderValue::F64(v) => AMQPValue::Double(*v),
        HeaderValue::Decimal { scale, value } => {
            AMQPValue::DecimalValue(DecimalValue { scale: *scale, value: *value })
        }
        HeaderValue::Text(v) => AMQPValue::LongString(LongString::from(v.to_vec())),
        // A short string has no type letter on RabbitMQ's wire.
        HeaderValue::ShortText(v) => AMQPValue::LongString(LongString::from(v.as_str())),
        HeaderValue::Bytes(v) => AMQPValue::ByteArray(v.to_vec().into()),
        HeaderValue::Timestamp(v) => AMQPValue::Timestamp(*v),
        HeaderValue::List(_) if depth >= DEEPEST => return Err(Unsendable::TooDeep),
        HeaderValue::List(v) => {
            let values = v.iter().map(|value| value_out(value, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            AMQPValue::FieldArray(FieldArray::from(values))
        }
        HeaderValue::Table(v) => AMQPValue::FieldTable(nested_out(v, depth + 1)?),
        other => return Err(Unsendable::Kind(format!("{other:?}"))),
    })
}

/// AMQP's short string, which lapin builds with a panic where it is too long.
pub(crate) fn short(text: &str, what: &'static str) -> Result<ShortString, Unsendable> {
    ShortString::try_new(text).map_err(|_| Unsendable::TooLong { what, found: text.len() })
}

/// The bytes that a table takes on the wire, its length included.
pub(super) fn table_len(table: &FieldTable) -> usize {
    4 + table.into_iter().map(|(name, value)| 1 + name.as_str().len() + value_len(value)).sum::<usize>()
}

fn value_len(value: &AMQPValue) -> usize {
    1 + match value {
        AMQPValue::Void => 0,
        AMQPValue::Boolean(_) | AMQPValue::ShortShortInt(_) | AMQPValue::ShortShortUInt(_) => 1,
        AMQPValue::ShortInt(_) | AMQPValue::ShortUInt(_) => 2,
        AMQPValue::LongInt(_) | AMQPValue::LongUInt(_) | AMQPValue::Float(_) => 4,
        AMQPValue::DecimalValue(_) => 5,
        AMQPValue::LongLongInt(_) | AMQPValue::Double(_) | AMQPValue::Timestamp(_) => 8,
        AMQPValue::ShortString(v) => 1 + v.as_str().len(),
        AMQPValue::LongString(v) => 4 + v.len(),
        AMQPValue::ByteArray(v) => 4 + v.len(),
        AMQPValue::FieldArray(v) => 4 + v.as_slice().iter().map(value_len).sum::<usize>(),
        AMQPValue::FieldTable(v) => table_len(v),
    }
}
