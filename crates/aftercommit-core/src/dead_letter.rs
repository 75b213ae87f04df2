//! What a dead letter carries beside the message itself.

use std::fmt::Write as _;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::FailureClass;
use crate::headers::{HeaderValue, Headers};
use crate::identity::ConsumerName;
use crate::message::Message;
use crate::publisher::{Destination, Outgoing};

/// Every header of ours starts with this. Removed from a message before a new set is written, so
/// that a message does not grow with each hop.
pub const HEADER_PREFIX: &str = "aftercommit-";

/// The most bytes of the error text in a dead letter.
pub const MAX_ERROR: usize = 1024;
/// The most bytes of any other single diagnostic.
pub const MAX_FIELD: usize = 512;

/// Names of the headers that a dead letter carries.
pub mod header {
    /// The consumer that gave up.
    pub const CONSUMER: &str = "aftercommit-consumer";
    /// The id that deduplication used, if there was one.
    pub const MESSAGE_ID: &str = "aftercommit-message-id";
    /// The event type, if there was one.
    pub const EVENT_TYPE: &str = "aftercommit-event-type";
    /// The aggregate id, if there was one.
    pub const AGGREGATE_ID: &str = "aftercommit-aggregate-id";
    /// Where the message was first published to.
    pub const DESTINATION: &str = "aftercommit-original-destination";
    /// The routing key it was published with.
    pub const ROUTING_KEY: &str = "aftercommit-original-routing-key";
    /// Its place in the source.
    pub const POSITION: &str = "aftercommit-original-position";
    /// The failure's class: `transient` (attempts used up), `poison`, `invariant`.
    pub const CLASS: &str = "aftercommit-failure-class";
    /// The last error, short.
    pub const ERROR: &str = "aftercommit-last-error";
    /// How many attempts failed.
    pub const ATTEMPTS: &str = "aftercommit-attempts";
    /// When it failed first (RFC 3339, database clock).
    pub const FIRST_FAILED_AT: &str = "aftercommit-first-failed-at";
    /// When it failed last.
    pub const LAST_FAILED_AT: &str = "aftercommit-last-failed-at";
    /// Fields that command a broker and are therefore not sent again, as readable text.
    pub const COMMANDS: &str = "aftercommit-broker-commands";
}

/// Why a message became a dead letter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Who gave up.
    pub consumer: ConsumerName,
    /// The id that deduplication used. `None` when the lack of one is the reason.
    pub message_id: Option<String>,
    /// Why.
    pub class: FailureClass,
    /// The last error. Cut to [`MAX_ERROR`] bytes, control characters made visible.
    pub error: String,
    /// How many attempts failed.
    pub attempts: u32,
    /// When the first attempt failed.
    pub first_failed_at: Option<OffsetDateTime>,
    /// When the last attempt failed.
    pub last_failed_at: Option<OffsetDateTime>,
    /// How much of it is written. The message matters more than what we say of it.
    pub detail: Detail,
}

/// How much a dead letter says beside the message itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    #[default]
    Full,
    /// Consumer, message id, class and attempts: where more does not fit.
    Short,
    /// Nothing: where not even that fits.
    Bare,
}

impl Detail {
    /// The next smaller one.
    #[must_use]
    pub const fn less(self) -> Self {
        match self {
            Self::Full => Self::Short,
            Self::Short | Self::Bare => Self::Bare,
        }
    }
}

impl Diagnostics {
    /// Diagnostics of a message that failed once.
    #[must_use]
    pub fn new(consumer: ConsumerName, class: FailureClass, error: impl Into<String>) -> Self {
        Self {
            consumer,
            message_id: None,
            class,
            error: error.into(),
            attempts: 1,
            first_failed_at: None,
            last_failed_at: None,
            detail: Detail::Full,
        }
    }

    /// The message as it goes to the dead letters: body, key, native properties and foreign headers
    /// byte-exact, one current set of diagnostics.
    #[must_use]
    pub fn park(&self, message: &Message, to: Destination) -> Outgoing {
        let mut letter = message.clone();
        letter.headers.retain(|name, _| !name.starts_with(HEADER_PREFIX));
        self.write(message, &mut letter.headers);
        Outgoing::new(to, letter)
    }

    fn write(&self, message: &Message, headers: &mut Headers) {
        if self.detail == Detail::Bare {
            return;
        }
        headers.set(header::CONSUMER, self.consumer.as_str());
        headers.set(header::CLASS, self.class.as_str());
        headers.set(header::ATTEMPTS, i64::from(self.attempts));
        set_text(headers, header::MESSAGE_ID, self.message_id.as_deref());
        if self.detail == Detail::Full {
            self.write_rest(message, headers);
        }
    }

    fn write_rest(&self, message: &Message, headers: &mut Headers) {
        let origin = &message.origin;
        headers.set(header::ERROR, readable(&self.error, MAX_ERROR));
        headers.set(header::DESTINATION, readable(&origin.destination, MAX_FIELD));
        let commands = (!message.commands.is_empty()).then(|| as_text(&message.commands));
        for (name, value) in [
            (header::EVENT_TYPE, message.event_type.as_deref()),
            (header::AGGREGATE_ID, message.aggregate_id.as_deref()),
            (header::ROUTING_KEY, origin.routing_key.as_deref()),
            (header::POSITION, origin.position.as_deref()),
            (header::COMMANDS, commands.as_deref()),
        ] {
            set_text(headers, name, value);
        }
        for (name, at) in
            [(header::FIRST_FAILED_AT, self.first_failed_at), (header::LAST_FAILED_AT, self.last_failed_at)]
        {
            if let Some(text) = at.and_then(|at| at.format(&Rfc3339).ok()) {
                headers.set(name, text);
            }
        }
    }
}

fn set_text(headers: &mut Headers, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        headers.set(name, readable(value, MAX_FIELD));
    }
}

/// Text that no broker or database refuses: control characters as escapes, at most `most` bytes,
/// cut between characters with `…` at the end.
#[must_use]
pub fn readable(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    let mut out = String::new();
    let mut safe = 0;
    for c in text.chars() {
        if c.is_control() {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
        if out.len() > most {
            out.truncate(safe);
            out.push_str(MARK);
            return out;
        }
        if out.len() + MARK.len() <= most {
            safe = out.len();
        }
    }
    out
}

fn as_text(headers: &Headers) -> String {
    let mut text = String::new();
    for (name, value) in headers.iter() {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(name);
        text.push('=');
        value_text(value, &mut text);
        // The reader is shown a bounded text anyway: do not print a megabyte to throw it away.
        if text.len() > 2 * MAX_FIELD {
            break;
        }
    }
    text
}

fn value_text(value: &HeaderValue, out: &mut String) {
    let written = match value {
        HeaderValue::List(values) => {
            let _ = write!(out, "[{} values] ", values.len());
            values.first().map_or(Ok(()), |first| {
                value_text(first, out);
                Ok(())
            })
        }
        HeaderValue::Table(table) => table.iter().try_for_each(|(name, value)| {
            write!(out, "{name}:")?;
            value_text(value, out);
            out.push(' ');
            Ok(())
        }),
        other => match (other.as_str(), other.as_i64()) {
            (Some(text), _) => write!(out, "{text}"),
            (None, Some(number)) => write!(out, "{number}"),
            (None, None) => write!(out, "{other:?}"),
        },
    };
    // Writing to a String does not fail.
    let _ = written;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn diagnostics(error: &str) -> Diagnostics {
        Diagnostics::new(ConsumerName::new("billing").unwrap(), FailureClass::Poison, error)
    }

    #[test]
    fn a_letter_keeps_the_message_and_has_one_set_of_diagnostics() {
        let mut message = Message::new(&b"\x00\xff"[..]).with_id("evt-1").with_key("k");
        message.headers.append("foreign", HeaderValue::U16(7));
        message.headers.append("aftercommit-last-error", "from an earlier hop");
        message.headers.append("aftercommit-forged", "x");
        message.commands.append("x-death", "orders");
        let letter = diagnostics("broken\0json").park(&message, Destination::new("dead"));
        let headers = &letter.message.headers;
        assert_eq!(letter.message.body, message.body);
        assert_eq!(letter.message.key, message.key);
        assert_eq!(headers.get("foreign"), Some(&HeaderValue::U16(7)));
        assert_eq!(headers.get("aftercommit-forged"), None);
        assert_eq!(headers.get(header::ERROR).and_then(HeaderValue::as_str), Some("broken\\u{0}json"));
        assert_eq!(headers.get(header::COMMANDS).and_then(HeaderValue::as_str), Some("x-death=orders"));
        assert_eq!(headers.iter().filter(|(name, _)| *name == header::ERROR).count(), 1);

        let again = diagnostics("second").park(&letter.message, Destination::new("dead"));
        assert_eq!(again.message.headers.len(), headers.len(), "no growth by hops");
    }

    #[test]
    fn less_detail_is_smaller_in_the_end_the_message_alone() {
        let message = Message::new("x").with_id("evt-1").with_type("order.created");
        let mut diagnostics = diagnostics("broken");
        let mut sizes = Vec::new();
        for _ in 0..3 {
            let letter = diagnostics.park(&message, Destination::new("dead")).message;
            sizes.push(letter.headers.len());
            diagnostics.detail = diagnostics.detail.less();
        }
        assert!(sizes[0] > sizes[1] && sizes[1] > 0 && sizes[2] == 0, "{sizes:?}");
    }

    proptest! {
        #[test]
        fn readable_is_bounded_and_has_no_controls(text in ".{0,400}|[\\x00-\\x1f]{0,100}", most in 8usize..200) {
            let out = readable(&text, most);
            prop_assert!(out.len() <= most);
            prop_assert!(!out.chars().any(char::is_control));
            if !text.chars().any(char::is_control) && text.len() <= most {
                prop_assert_eq!(out, text);
            }
        }
    }
}
