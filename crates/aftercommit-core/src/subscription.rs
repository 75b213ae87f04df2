//! What a consumer reads, and how much of it at once.

use crate::identity::ConsumerName;

/// A setting that cannot work, found before anything is opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Zero where it would mean "no limit" or a loop without pause.
    #[error("{what} must not be 0: it would mean no limit at all")]
    Zero {
        /// Which setting.
        what: &'static str,
    },
    /// Empty where a name is needed.
    #[error("{what} must not be empty")]
    Empty {
        /// Which setting.
        what: &'static str,
    },
    /// Longer or larger than allowed.
    #[error("{what} is {found}, the most is {most}")]
    TooLarge {
        /// Which setting.
        what: &'static str,
        /// What was given.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// Smaller than another setting needs.
    #[error("{what} is {found}, but {because} needs at least {least}")]
    TooSmall {
        /// Which setting.
        what: &'static str,
        /// What was given.
        found: usize,
        /// What is needed.
        least: usize,
        /// Why.
        because: &'static str,
    },
    /// Not understood.
    #[error("{what} is not valid: {reason}")]
    Invalid {
        /// Which setting.
        what: &'static str,
        /// Why; never with a secret in it.
        reason: String,
    },
}

/// A route that must lead into the source, where the product has routes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The exchange that messages are published to.
    pub from: String,
    /// The routing key or pattern.
    pub key: String,
}

/// One consumer's subscription to one source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subscription {
    /// Whose it is.
    pub consumer: ConsumerName,
    /// The queue, topic or table that is read.
    pub source: String,
    /// How many deliveries may be unsettled at once. `None`: the consumer core derives it from its
    /// lanes and batches.
    pub prefetch: Option<u16>,
    /// The routes that must lead into the source. Declared or checked with it.
    pub bindings: Vec<Binding>,
}

impl Subscription {
    /// A consumer's subscription to a source.
    ///
    /// # Errors
    /// [`ConfigError`] when the consumer's name breaks the rules of [`ConsumerName`] or the source
    /// has no name.
    pub fn new(consumer: impl Into<String>, source: impl Into<String>) -> Result<Self, ConfigError> {
        let source = source.into();
        if source.is_empty() {
            return Err(ConfigError::Empty { what: "the source's name" });
        }
        Ok(Self { consumer: ConsumerName::new(consumer)?, source, prefetch: None, bindings: Vec::new() })
    }

    /// Sets how many deliveries may be unsettled at once.
    ///
    /// # Errors
    /// [`ConfigError::Zero`] for 0, which brokers read as "no limit": the whole queue would be
    /// pulled into memory.
    pub fn with_prefetch(mut self, prefetch: u16) -> Result<Self, ConfigError> {
        if prefetch == 0 {
            return Err(ConfigError::Zero { what: "prefetch" });
        }
        self.prefetch = Some(prefetch);
        Ok(self)
    }

    /// Adds a route that must lead into the source.
    #[must_use]
    pub fn with_binding(mut self, from: impl Into<String>, key: impl Into<String>) -> Self {
        self.bindings.push(Binding { from: from.into(), key: key.into() });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_zero_is_refused() {
        let subscription = Subscription::new("billing", "orders").unwrap();
        assert_eq!(subscription.with_prefetch(0), Err(ConfigError::Zero { what: "prefetch" }));
    }

    #[test]
    fn names_are_needed() {
        assert!(Subscription::new("", "orders").is_err());
        assert!(Subscription::new("billing", "").is_err());
    }
}
