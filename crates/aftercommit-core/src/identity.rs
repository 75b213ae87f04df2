//! Who handled what: the pair (consumer name, message id), and where the id comes from.

mod policy;

pub use policy::{Field, IdPolicy, IdSource, MissingId, Resolved};

use crate::subscription::ConfigError;

/// The most bytes a consumer name may have.
pub const MAX_CONSUMER_NAME: usize = 128;
/// The most bytes a message id may have.
pub const MAX_MESSAGE_ID: usize = 255;

/// Whose handling is remembered. Two consumers each handle an event once; two instances of one
/// consumer share the name. Compared byte by byte: `Billing` and `billing` are two consumers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerName(String);

impl ConsumerName {
    /// Checks a name: 1 to 128 bytes, no control characters.
    ///
    /// # Errors
    /// [`ConfigError`] naming the rule that is broken.
    pub fn new(name: impl Into<String>) -> Result<Self, ConfigError> {
        const WHAT: &str = "the consumer's name";
        let name = name.into();
        if name.trim().is_empty() {
            return Err(ConfigError::Empty { what: WHAT });
        }
        if name.len() > MAX_CONSUMER_NAME {
            return Err(ConfigError::TooLarge { what: WHAT, found: name.len(), most: MAX_CONSUMER_NAME });
        }
        if name.chars().any(char::is_control) {
            return Err(ConfigError::Invalid { what: WHAT, reason: "it has a control character".into() });
        }
        Ok(Self(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id by which a message is known: 1 to 255 bytes of UTF-8 without U+0000, not only white
/// space. Compared byte by byte, never cut, never trimmed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

impl MessageId {
    /// Checks an id.
    ///
    /// # Errors
    /// [`IdError`] naming the rule that is broken.
    pub fn new(id: impl Into<String>) -> Result<Self, IdError> {
        let id = id.into();
        if id.trim().is_empty() {
            return Err(IdError::Missing);
        }
        if id.len() > MAX_MESSAGE_ID {
            return Err(IdError::TooLong { found: id.len(), most: MAX_MESSAGE_ID });
        }
        if id.contains('\0') {
            return Err(IdError::Nul);
        }
        Ok(Self(id))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for MessageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a message has no usable id. Its texts are the reasons that dead letters carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Absent, empty or only white space.
    #[error("no message id")]
    Missing,
    /// Longer than an id may be.
    #[error("message id too long: {found} bytes, the most is {most}")]
    TooLong {
        /// Bytes found.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// It contains U+0000, which databases refuse in text.
    #[error("message id contains NUL")]
    Nul,
    /// It is not UTF-8, or in JSON neither a string nor a whole number.
    #[error("message id is not text")]
    NotText,
    /// The body that should contain it is not JSON.
    #[error("the body is not JSON, and the message id is a field of it")]
    NotJson,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_every_byte() {
        assert_ne!(MessageId::new("a").unwrap(), MessageId::new("A").unwrap());
        assert_ne!(MessageId::new("a").unwrap(), MessageId::new(" a").unwrap());
        assert_ne!(MessageId::new("café").unwrap(), MessageId::new("cafe").unwrap());
    }

    #[test]
    fn limits_are_in_bytes() {
        assert!(MessageId::new("a".repeat(255)).is_ok());
        assert_eq!(
            MessageId::new("é".repeat(128)),
            Err(IdError::TooLong { found: 256, most: MAX_MESSAGE_ID })
        );
        assert_eq!(MessageId::new("   "), Err(IdError::Missing));
        assert_eq!(MessageId::new("a\0b"), Err(IdError::Nul));
        assert!(ConsumerName::new("x".repeat(129)).is_err());
    }
}
