//! What a handler says when it did not succeed, and what follows from it.

use std::error::Error;
use std::fmt;

use crate::BoxError;
use crate::chain::with_sources;

/// Why a message was not handled. It decides what happens to the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureClass {
    /// It may succeed later: a downstream answered 503, a lock was taken. Costs an attempt; tried
    /// again with growing delay until the attempts are used up.
    Transient,
    /// The message itself is broken: bad JSON, a missing field, an unknown type or version. Dead
    /// letter at once.
    Poison,
    /// The message is fine and the world is not: an order that must exist does not. Dead letter at
    /// once.
    Invariant,
    /// Our own database or broker is away. Costs no attempt; consumption pauses until it is back.
    Infrastructure,
}

impl FailureClass {
    /// The class in logs, metrics and dead letters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Poison => "poison",
            Self::Invariant => "invariant",
            Self::Infrastructure => "infrastructure",
        }
    }

    /// Whether another attempt makes sense.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Transient | Self::Infrastructure)
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A handler's failure.
///
/// Any error converts with `?`, as [`FailureClass::Transient`] that was not *stated*: the store
/// then looks into it, and a deadlock, a serialization failure or a lost connection is treated as
/// what it is. What a handler states itself is taken as it is.
pub struct Failure {
    class: FailureClass,
    stated: bool,
    reason: String,
    source: Option<BoxError>,
}

impl Failure {
    /// See [`FailureClass::Transient`].
    #[must_use]
    pub fn transient(reason: impl Into<String>) -> Self {
        Self::stated(FailureClass::Transient, reason)
    }

    /// See [`FailureClass::Poison`].
    #[must_use]
    pub fn poison(reason: impl Into<String>) -> Self {
        Self::stated(FailureClass::Poison, reason)
    }

    /// See [`FailureClass::Invariant`].
    #[must_use]
    pub fn invariant(reason: impl Into<String>) -> Self {
        Self::stated(FailureClass::Invariant, reason)
    }

    /// See [`FailureClass::Infrastructure`].
    #[must_use]
    pub fn infrastructure(reason: impl Into<String>) -> Self {
        Self::stated(FailureClass::Infrastructure, reason)
    }

    /// A failure with a reason of your own whose class is left to the error behind it, as with `?`:
    /// a deadlock below stays a deadlock. Also the way in for `anyhow::Error` and other boxed errors.
    #[must_use]
    pub fn caused_by(reason: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self {
            class: FailureClass::Transient,
            stated: false,
            reason: reason.into(),
            source: Some(source.into()),
        }
    }

    fn stated(class: FailureClass, reason: impl Into<String>) -> Self {
        Self { class, stated: true, reason: reason.into(), source: None }
    }

    /// Adds the error behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The class.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        self.class
    }

    /// Whether the handler chose the class, rather than a conversion with `?`.
    #[must_use]
    pub const fn is_stated(&self) -> bool {
        self.stated
    }

    /// The reason alone, without the chain of sources.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The error behind it.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// The reason and every source below it in one line. May be long; diagnostics bound it.
    #[must_use]
    pub fn chain(&self) -> String {
        with_sources(self.reason.clone(), self.source.as_deref().map(|error| error as _))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            class: FailureClass::Transient,
            stated: false,
            reason: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

// `Failure` is no `Error` itself: the conversion above would overlap with `From<T> for T`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.reason)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("class", &self.class)
            .field("stated", &self.stated)
            .field("reason", &self.reason)
            .field("source", &self.source)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_converts_unstated() {
        let failure: Failure = std::io::Error::other("disk").into();
        assert_eq!(failure.class(), FailureClass::Transient);
        assert!(!failure.is_stated());
        assert_eq!(failure.chain(), "disk");
    }

    #[test]
    fn context_does_not_state_a_class() {
        let failure = Failure::caused_by("inserting the order", std::io::Error::other("reset"));
        assert!(!failure.is_stated());
        assert_eq!(failure.chain(), "inserting the order: reset");
    }

    #[test]
    fn the_chain_names_every_level() {
        let failure = Failure::invariant("no such order").with_source(std::io::Error::other("row missing"));
        assert_eq!(failure.chain(), "no such order: row missing");
        assert!(failure.is_stated());
    }
}
