//! The envelope: what a message carries, whichever product brought it.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use time::OffsetDateTime;

use crate::failure::Failure;
use crate::headers::Headers;
use crate::identity::MessageId;

/// Where a message was found, in the product's own words. For diagnostics and replay; nothing is
/// decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Where it was published to: exchange, topic or queue table.
    pub destination: String,
    /// The routing key it was published with, where the product has one.
    pub routing_key: Option<String>,
    /// What identifies it inside its source, where the product has that: `partition/offset`, an
    /// entry id, a row id. Never an id for deduplication.
    pub position: Option<String>,
}

/// A message as a consumer sees it.
///
/// Every product maps its native properties to these fields and its page says how. Fields are
/// `None` when the message does not carry them; nothing is invented. Body, key and foreign headers
/// are byte-exact.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Message {
    /// The id in the product's native place, unchecked and byte-exact. What deduplication uses is
    /// decided by the subscription's [`IdPolicy`](crate::IdPolicy).
    pub id: Option<Bytes>,
    /// What kind of event this is, such as `order.created`.
    pub event_type: Option<String>,
    /// The version of the body's schema. Whole numbers are in plain decimal: `1`, whatever width
    /// they travelled in.
    pub schema_version: Option<String>,
    /// The entity that the event speaks of.
    pub aggregate_id: Option<String>,
    /// The trace this message belongs to.
    pub trace_id: Option<String>,
    /// The conversation this message belongs to.
    pub correlation_id: Option<String>,
    /// When it happened, as the producer says.
    pub occurred_at: Option<OffsetDateTime>,
    /// The ordering key. Messages of one key never overtake each other inside a process.
    pub key: Option<Bytes>,
    /// What the producer set as headers, types kept. Envelope fields that travel as headers are
    /// in their fields *and* here, so that a copy of the message is a copy.
    pub headers: Headers,
    /// Native properties without a field of their own (`content_type`, `priority` …), under the
    /// product's names. A publisher of the same product restores them, others ignore them.
    pub native: Headers,
    /// Fields by which somebody commanded a broker (`x-death`, `CC`, `expiration` …): taken out of
    /// the headers when the message came in, shown in diagnostics, never sent again.
    pub commands: Headers,
    /// The body. `None` is absent (a tombstone), which is not the same as empty.
    pub body: Option<Bytes>,
    /// Where it was found.
    pub origin: Origin,
    decoded: Decoded,
    stand_in: OnceLock<MessageId>,
}

impl Message {
    /// A message with this body and nothing else.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: Some(body.into()), ..Self::default() }
    }

    /// Sets the native id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Bytes>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the event type.
    #[must_use]
    pub fn with_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// Sets the ordering key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The id made up for a message without one, made at the first call: as long as this message is
    /// in memory, given back and handed out again, it keeps the same.
    pub fn stand_in_id(&self, make: impl FnOnce() -> MessageId) -> &MessageId {
        self.stand_in.get_or_init(make)
    }

    /// The body decoded once, however often this is called: the consumer core decodes before it
    /// claims, and the handler finds the same value again without paying for it.
    ///
    /// A second call with another `T` decodes afresh.
    ///
    /// # Errors
    /// What `decode` answers; a failure is not remembered.
    pub fn decode_once<T, F>(&self, decode: F) -> Result<Arc<T>, Failure>
    where
        T: Send + Sync + 'static,
        F: FnOnce(&Self) -> Result<T, Failure>,
    {
        if let Some(known) = self.decoded.0.get()
            && let Ok(value) = Arc::clone(known).downcast::<T>()
        {
            return Ok(value);
        }
        let value = Arc::new(decode(self)?);
        // Another type may hold the place already; then this one is decoded each time.
        let _ = self.decoded.0.set(Arc::clone(&value) as Arc<dyn Any + Send + Sync>);
        Ok(value)
    }
}

/// The decoded body. A copy of a message starts without one: its body may be changed.
#[derive(Default)]
struct Decoded(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Clone for Decoded {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for Decoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "decoded" } else { "raw" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_decoded_once() {
        let message = Message::new("7");
        let first = message.decode_once(|_| Ok(7_u32)).unwrap();
        let second = message.decode_once::<u32, _>(|_| Err(Failure::poison("decoded twice"))).unwrap();
        assert_eq!((*first, *second), (7, 7));
        assert_eq!(*message.decode_once(|_| Ok("other type")).unwrap(), "other type");
        let copy = message.clone();
        assert_eq!(*copy.decode_once(|_| Ok(8_u32)).unwrap(), 8);
        assert_eq!(*message.decode_once(|_| Ok(9_u32)).unwrap(), 7, "the copy decodes for itself");
    }
}
