//! Headers as JSON that a person can read and that loses nothing: `[[name, type, value], …]`.

use aftercommit_core::{HeaderValue, Headers};
use bytes::Bytes;
use serde_json::{Value, json};

/// Nesting beyond which nothing is taken: the JSON would be too deep to be read again.
const DEEPEST: usize = 32;

/// The headers are nested too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// `None` for no headers.
pub(super) fn encode(headers: &Headers) -> Result<Option<String>, TooDeep> {
    if headers.is_empty() {
        return Ok(None);
    }
    table(headers, 0).map(|value| Some(value.to_string()))
}

/// `None` for what [`encode`] did not write.
pub(super) fn decode(text: &str) -> Option<Headers> {
    read_table(&serde_json::from_str(text).ok()?)
}

fn table(headers: &Headers, depth: usize) -> Result<Value, TooDeep> {
    if depth > DEEPEST {
        return Err(TooDeep);
    }
    let entry = |(name, value): (&str, &HeaderValue)| {
        let (kind, value) = write(value, depth)?;
        Ok(json!([name, kind, value]))
    };
    headers.iter().map(entry).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn write(value: &HeaderValue, depth: usize) -> Result<(&'static str, Value), TooDeep> {
    Ok(match value {
        HeaderValue::Null => ("null", Value::Null),
        HeaderValue::Bool(value) => ("bool", json!(value)),
        HeaderValue::I8(value) => ("i8", json!(value)),
        HeaderValue::U8(value) => ("u8", json!(value)),
        HeaderValue::I16(value) => ("i16", json!(value)),
        HeaderValue::U16(value) => ("u16", json!(value)),
        HeaderValue::I32(value) => ("i32", json!(value)),
        HeaderValue::U32(value) => ("u32", json!(value)),
        HeaderValue::I64(value) => ("i64", json!(value)),
        // As text: JSON has no infinity, and its readers round. What is not a number is told by its bits.
        HeaderValue::F32(value) if value.is_nan() => ("f32-bits", json!(value.to_bits())),
        HeaderValue::F32(value) => ("f32", json!(format!("{value:?}"))),
        HeaderValue::F64(value) if value.is_nan() => ("f64-bits", json!(value.to_bits())),
        HeaderValue::F64(value) => ("f64", json!(format!("{value:?}"))),
        HeaderValue::Decimal { scale, value } => ("decimal", json!([scale, value])),
        HeaderValue::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => ("text", json!(text)),
            Err(_) => ("text-hex", json!(hex(bytes))),
        },
        HeaderValue::ShortText(text) => ("short", json!(text)),
        HeaderValue::Bytes(bytes) => ("bytes-hex", json!(hex(bytes))),
        HeaderValue::Timestamp(seconds) => ("timestamp", json!(seconds)),
        HeaderValue::List(values) => ("list", list(values, depth + 1)?),
        HeaderValue::Table(headers) => ("table", table(headers, depth + 1)?),
        // A form that this crate does not know yet; dropping it silently would be worse.
        other => ("text", json!(format!("{other:?}"))),
    })
}

fn list(values: &[HeaderValue], depth: usize) -> Result<Value, TooDeep> {
    if depth > DEEPEST {
        return Err(TooDeep);
    }
    let entry = |value| write(value, depth).map(|(kind, value)| json!([kind, value]));
    values.iter().map(entry).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn read_table(value: &Value) -> Option<Headers> {
    let entry = |entry: &Value| match entry.as_array()?.as_slice() {
        [name, kind, value] => Some((name.as_str()?.to_owned(), read(kind.as_str()?, value)?)),
        _ => None,
    };
    value.as_array()?.iter().map(entry).collect()
}

fn read_list(value: &Value) -> Option<Vec<HeaderValue>> {
    let entry = |entry: &Value| match entry.as_array()?.as_slice() {
        [kind, value] => read(kind.as_str()?, value),
        _ => None,
    };
    value.as_array()?.iter().map(entry).collect()
}

fn read(kind: &str, value: &Value) -> Option<HeaderValue> {
    Some(match kind {
        "null" => HeaderValue::Null,
        "bool" => HeaderValue::Bool(value.as_bool()?),
        "i8" => HeaderValue::I8(value.as_i64()?.try_into().ok()?),
        "u8" => HeaderValue::U8(value.as_u64()?.try_into().ok()?),
        "i16" => HeaderValue::I16(value.as_i64()?.try_into().ok()?),
        "u16" => HeaderValue::U16(value.as_u64()?.try_into().ok()?),
        "i32" => HeaderValue::I32(value.as_i64()?.try_into().ok()?),
        "u32" => HeaderValue::U32(value.as_u64()?.try_into().ok()?),
        "i64" => HeaderValue::I64(value.as_i64()?),
        "f32" => HeaderValue::F32(value.as_str()?.parse().ok()?),
        "f32-bits" => HeaderValue::F32(f32::from_bits(value.as_u64()?.try_into().ok()?)),
        "f64" => HeaderValue::F64(value.as_str()?.parse().ok()?),
        "f64-bits" => HeaderValue::F64(f64::from_bits(value.as_u64()?)),
        "decimal" => HeaderValue::Decimal {
            scale: value.get(0)?.as_u64()?.try_into().ok()?,
            value: value.get(1)?.as_u64()?.try_into().ok()?,
        },
        "text" => HeaderValue::text(value.as_str()?),
        "text-hex" => HeaderValue::Text(unhex(value.as_str()?)?),
        "short" => HeaderValue::ShortText(value.as_str()?.to_owned()),
        "bytes-hex" => HeaderValue::Bytes(unhex(value.as_str()?)?),
        "timestamp" => HeaderValue::Timestamp(value.as_u64()?),
        "list" => HeaderValue::List(read_list(value)?),
        "table" => HeaderValue::Table(read_table(value)?),
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| DIGITS[usize::from(digit)] as char)
        .collect()
}

fn unhex(text: &str) -> Option<Bytes> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests;
