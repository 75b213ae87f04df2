//! The log line: one per event, `key=value`, always the same keys in the same order.

use std::fmt;
use std::str::FromStr;

use crate::LabError;

/// The keys of a line, in order.
pub const KEYS: [&str; 18] = [
    "timestamp",
    "level",
    "service",
    "product",
    "lab",
    "messageId",
    "eventType",
    "schemaVersion",
    "aggregateId",
    "traceId",
    "correlationId",
    "destination",
    "routingKey",
    "consumer",
    "attempt",
    "redelivered",
    "durationMs",
    "status",
];

/// Stands for a value that there is none of.
const ABSENT: &str = "-";

/// One event of a run, as the producer, a consumer or the lab itself tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    who: String,
    /// In the order of [`KEYS`].
    values: [String; KEYS.len()],
}

impl LogLine {
    /// A line of somebody, without any value.
    #[must_use]
    pub fn of(who: &str) -> Self {
        Self { who: who.to_owned(), values: [(); KEYS.len()].map(|()| ABSENT.to_owned()) }
    }

    /// The same with a value. What would break the line is quoted; an empty value is absent.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl AsRef<str>) -> Self {
        if let Some(at) = KEYS.iter().position(|known| *known == key) {
            self.values[at] = plain(value.as_ref());
        }
        self
    }

    /// The value of a key; empty where there is none.
    #[must_use]
    pub fn get(&self, key: &str) -> &str {
        let at = KEYS.iter().position(|known| *known == key);
        at.map(|at| self.values[at].as_str()).filter(|value| *value != ABSENT).unwrap_or_default()
    }

    /// The same with placeholders for what differs between two runs that did the same.
    #[must_use]
    pub fn normalised(&self) -> Self {
        self.clone().with("timestamp", "<ts>").with("durationMs", "<ms>")
    }
}

fn plain(value: &str) -> String {
    let breaks = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '=');
    match value {
        "" => ABSENT.to_owned(),
        text if text == ABSENT || text.contains(breaks) => format!("{text:?}").replace(' ', "\\u{20}"),
        text => text.to_owned(),
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.who)?;
        KEYS.iter().zip(&self.values).try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

impl FromStr for LogLine {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = || LabError::failed(format!("not a log line: {text:?}"));
        let mut words = text.split(' ');
        let who =
            words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']')).ok_or_else(wrong)?;
        let mut line = Self::of(who);
        for (value, key) in line.values.iter_mut().zip(KEYS) {
            let word = words.next().and_then(|word| word.strip_prefix(key)?.strip_prefix('='));
            word.ok_or_else(wrong)?.clone_into(value);
        }
        if words.next().is_some() { Err(wrong()) } else { Ok(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_order_are_those_of_the_format() {
        let line = LogLine::of("producer").with("status", "confirmed").with("messageId", "mid-1");
        assert_eq!(
            line.to_string(),
            "[producer] timestamp=- level=- service=- product=- lab=- messageId=mid-1 eventType=- \
             schemaVersion=- aggregateId=- traceId=- correlationId=- destination=- routingKey=- consumer=- \
             attempt=- redelivered=- durationMs=- status=confirmed"
        );
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = LogLine::of("consumer").with("messageId", "a b=\"c\"\n").with("aggregateId", "-");
        assert_eq!(line.to_string().split(' ').count(), 1 + KEYS.len());
        assert_eq!(line.to_string().parse::<LogLine>().unwrap(), line);
        for wrong in ["", "[x]", "producer timestamp=1", &format!("{line} more=1")] {
            assert!(wrong.parse::<LogLine>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_times_are_normalised() {
        let at = |time: &str, id: &str| {
            LogLine::of("consumer").with("timestamp", time).with("durationMs", time).with("messageId", id)
        };
        assert_eq!(at("1", "a").normalised(), at("2", "a").normalised());
        assert_ne!(at("1", "a").normalised(), at("1", "b").normalised());
        assert!(at("1", "a").normalised().to_string().contains(" durationMs=<ms> "));
    }
}
