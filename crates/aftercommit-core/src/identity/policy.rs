//! Where a subscription finds the id of its messages.

use serde_json::Value;

use super::{IdError, MessageId};
use crate::headers::HeaderValue;
use crate::message::Message;

/// Where the id comes from and what happens to a message without one.
///
/// There is no silent fallback from one place to another: a fallback would give one message two
/// ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdPolicy {
    /// Where to look.
    pub source: IdSource,
    /// What to do when it is not there.
    pub missing: MissingId,
}

/// The one place where the id is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdSource {
    /// The product's native place (AMQP `message_id`, a header or property elsewhere).
    #[default]
    Native,
    /// CloudEvents: `source` and `id` together, from the binary mode's headers (`cloudEvents:`,
    /// `cloudEvents_`, `ce_`, `ce-`) or the structured mode's JSON body.
    CloudEvents,
    /// Several fields together, such as a business key of order and action.
    Fields(Vec<Field>),
}

/// One part of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// A header, by its exact name.
    Header(String),
    /// A field of the JSON body, as a JSON Pointer (RFC 6901): `/order/id`.
    Json(String),
    /// [`Message::event_type`].
    EventType,
    /// [`Message::aggregate_id`].
    AggregateId,
    /// [`Message::key`].
    Key,
}

/// What happens to a message without an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingId {
    /// It becomes a dead letter with that reason.
    #[default]
    DeadLetter,
    /// It is handled under an id made up for this delivery. **Deduplication is off for it**: its
    /// redelivery has another id and is handled again.
    MakeUp,
}

/// What a policy found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The message's own id.
    Own(MessageId),
    /// There is none and the policy says to make one up.
    MakeUp,
}

impl IdPolicy {
    /// A policy that takes one field of the JSON body, as a JSON Pointer.
    #[must_use]
    pub fn json(pointer: impl Into<String>) -> Self {
        Self { source: IdSource::Fields(vec![Field::Json(pointer.into())]), ..Self::default() }
    }

    /// Finds the id of a message.
    ///
    /// # Errors
    /// [`IdError`]. An id that is there and breaks a rule is an error under every policy; only
    /// absence is forgiven by [`MissingId::MakeUp`].
    pub fn resolve(&self, message: &Message) -> Result<Resolved, IdError> {
        match (self.find(message), self.missing) {
            (Err(IdError::Missing), MissingId::MakeUp) => Ok(Resolved::MakeUp),
            (found, _) => found.map(Resolved::Own),
        }
    }

    fn find(&self, message: &Message) -> Result<MessageId, IdError> {
        match &self.source {
            IdSource::Native => MessageId::new(text(message.id.as_deref().ok_or(IdError::Missing)?)?),
            IdSource::CloudEvents => cloud_event(message),
            IdSource::Fields(fields) => joined(fields, message),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, IdError> {
    std::str::from_utf8(bytes).map_err(|_| IdError::NotText)
}

fn joined(fields: &[Field], message: &Message) -> Result<MessageId, IdError> {
    let mut json = None;
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        parts.push(part(field, message, &mut json)?);
    }
    join(&parts)
}

/// Several parts as one text from which the parts can be told again: `:` between them, `\` before
/// a `:` or `\` inside one. Without the escape `a:b` + `c` and `a` + `b:c` would be one id.
fn join(parts: &[String]) -> Result<MessageId, IdError> {
    match parts {
        [] => Err(IdError::Missing),
        [only] => MessageId::new(only.as_str()),
        _ => {
            let escaped: Vec<_> =
                parts.iter().map(|part| part.replace('\\', "\\\\").replace(':', "\\:")).collect();
            MessageId::new(escaped.join(":"))
        }
    }
}

fn part(field: &Field, message: &Message, json: &mut Option<Value>) -> Result<String, IdError> {
    let found = match field {
        Field::Header(name) => header_text(message.headers.get(name))?,
        Field::Json(pointer) => {
            let value = parsed(message, json)?;
            json_text(value.pointer(pointer))?
        }
        Field::EventType => message.event_type.clone(),
        Field::AggregateId => message.aggregate_id.clone(),
        Field::Key => message.key.as_deref().map(text).transpose()?.map(str::to_owned),
    };
    found.filter(|part| !part.trim().is_empty()).ok_or(IdError::Missing)
}

fn parsed<'a>(message: &Message, json: &'a mut Option<Value>) -> Result<&'a Value, IdError> {
    if json.is_none() {
        let body = message.body.as_deref().unwrap_or_default();
        *json = Some(serde_json::from_slice(body).map_err(|_| IdError::NotJson)?);
    }
    json.as_ref().ok_or(IdError::NotJson)
}

fn header_text(value: Option<&HeaderValue>) -> Result<Option<String>, IdError> {
    match value {
        None | Some(HeaderValue::Null) => Ok(None),
        Some(value) => match (value.as_i64(), value.as_bytes()) {
            (Some(number), _) => Ok(Some(number.to_string())),
            (None, Some(bytes)) => text(&bytes).map(|text| Some(text.to_owned())),
            (None, None) => Err(IdError::NotText),
        },
    }
}

fn json_text(value: Option<&Value>) -> Result<Option<String>, IdError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        // A float as an id would depend on who printed it.
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(Some(number.to_string())),
        Some(_) => Err(IdError::NotText),
    }
}

fn cloud_event(message: &Message) -> Result<MessageId, IdError> {
    for prefix in ["cloudEvents:", "cloudEvents_", "ce_", "ce-"] {
        let attribute = |name: &str| header_text(message.headers.get(&format!("{prefix}{name}")));
        if let (Some(source), Some(id)) = (attribute("source")?, attribute("id")?) {
            return cloud_event_id(source, id);
        }
    }
    let content_type = message.native.get("content_type").and_then(HeaderValue::as_str).unwrap_or_default();
    if !content_type.starts_with("application/cloudevents+json") {
        return Err(IdError::Missing);
    }
    let mut json = None;
    let value = parsed(message, &mut json)?;
    match (json_text(value.pointer("/source"))?, json_text(value.pointer("/id"))?) {
        (Some(source), Some(id)) => cloud_event_id(source, id),
        _ => Err(IdError::Missing),
    }
}

/// CloudEvents 1.0, "id": producers must make `source` + `id` unique for each distinct event.
fn cloud_event_id(source: String, id: String) -> Result<MessageId, IdError> {
    if source.trim().is_empty() || id.trim().is_empty() {
        return Err(IdError::Missing);
    }
    join(&[source, id])
}

#[cfg(test)]
mod tests;
