//! Header names and values, with their types kept.

use bytes::Bytes;

/// One header value.
///
/// The variants are the union of what the products' wire formats can say, so that a header that
/// came in as an unsigned 16-bit number goes out as one. A product that lacks a variant sends the
/// nearest one it has and says so on its page; it never drops a header silently.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HeaderValue {
    /// Present, without a value. Not the same as an empty text.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed 8-bit number.
    I8(i8),
    /// An unsigned 8-bit number.
    U8(u8),
    /// A signed 16-bit number.
    I16(i16),
    /// An unsigned 16-bit number.
    U16(u16),
    /// A signed 32-bit number.
    I32(i32),
    /// An unsigned 32-bit number.
    U32(u32),
    /// A signed 64-bit number.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A decimal: `value / 10^scale`.
    Decimal {
        /// How many digits stand behind the point.
        scale: u8,
        /// All digits as one number.
        value: u32,
    },
    /// A text as the wire carried it: usually UTF-8, but nobody checked.
    Text(Bytes),
    /// A text that the wire format limits to 255 bytes.
    ShortText(String),
    /// Bytes that do not claim to be text.
    Bytes(Bytes),
    /// Seconds since the Unix epoch.
    Timestamp(u64),
    /// Several values in order.
    List(Vec<Self>),
    /// Named values in order.
    Table(Headers),
}

impl HeaderValue {
    /// A text value.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Bytes::from(text.into()))
    }

    /// The value as text, if it is a text (or bytes) of valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) | Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            Self::ShortText(text) => Some(text),
            _ => None,
        }
    }

    /// The value as bytes, if it is a text or bytes.
    #[must_use]
    pub fn as_bytes(&self) -> Option<Bytes> {
        match self {
            Self::Text(bytes) | Self::Bytes(bytes) => Some(bytes.clone()),
            Self::ShortText(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
            _ => None,
        }
    }

    /// The value as a whole number, whatever width it travelled in. Floats, texts and all other
    /// forms are `None`: a number is never guessed.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::I8(n) => Some(n.into()),
            Self::U8(n) => Some(n.into()),
            Self::I16(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::I32(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::I64(n) => Some(n),
            _ => None,
        }
    }
}

impl From<&str> for HeaderValue {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for HeaderValue {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<i64> for HeaderValue {
    fn from(number: i64) -> Self {
        Self::I64(number)
    }
}

/// Headers in the order of the wire. A name may occur more than once where the product allows it;
/// [`Headers::get`] answers with the last one, as those products' own clients do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headers(Vec<(String, HeaderValue)>);

impl Headers {
    /// No headers.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The last value under `name`, byte-exact in case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&HeaderValue> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a value and keeps what is there under the same name.
    pub fn append(&mut self, name: impl Into<String>, value: impl Into<HeaderValue>) {
        self.0.push((name.into(), value.into()));
    }

    /// Sets a value and removes what was there under the same name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<HeaderValue>) {
        let name = name.into();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
    }

    /// Removes every value under `name` and returns the last one.
    pub fn remove(&mut self, name: &str) -> Option<HeaderValue> {
        let mut last = None;
        self.0.retain_mut(|(known, value)| {
            let found = known == name;
            if found {
                last = Some(std::mem::replace(value, HeaderValue::Null));
            }
            !found
        });
        last
    }

    /// Keeps the headers for which `keep` answers `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &HeaderValue) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, HeaderValue)> for Headers {
    fn from_iter<I: IntoIterator<Item = (String, HeaderValue)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl IntoIterator for Headers {
    type Item = (String, HeaderValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_reads_alike_in_every_width() {
        for value in [
            HeaderValue::I8(2),
            HeaderValue::U8(2),
            HeaderValue::I16(2),
            HeaderValue::U16(2),
            HeaderValue::I32(2),
            HeaderValue::U32(2),
            HeaderValue::I64(2),
        ] {
            assert_eq!(value.as_i64(), Some(2), "{value:?}");
        }
        for value in [HeaderValue::F64(2.0), HeaderValue::text("2"), HeaderValue::Null] {
            assert_eq!(value.as_i64(), None, "{value:?}");
        }
    }

    #[test]
    fn set_replaces_and_append_keeps() {
        let mut headers = Headers::new();
        headers.append("a", "1");
        headers.append("a", "2");
        assert_eq!(headers.len(), 2);
        assert_eq!(headers.get("a").and_then(HeaderValue::as_str), Some("2"));
        headers.set("a", "3");
        assert_eq!(headers.len(), 1);
        assert_eq!(headers.remove("a"), Some(HeaderValue::text("3")));
        assert!(headers.is_empty());
    }
}
