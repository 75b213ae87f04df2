//! The one vocabulary for what happened to a message.

/// What happened to a message, in logs, metrics and docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Handled, committed, to be confirmed.
    Applied,
    /// The inbox knew it; nothing was done, to be confirmed.
    Duplicate,
    /// Somebody else handles it right now; given back for later. (Lease mode only.)
    InFlight,
    /// Failed or interrupted; given back for another attempt.
    Retried,
    /// The business said no; committed, to be confirmed.
    Rejected,
    /// Goes to the dead letters; confirmed after its copy is.
    Parked,
}

impl Outcome {
    /// Every outcome, in the order of the docs.
    pub const ALL: [Self; 6] =
        [Self::Applied, Self::Duplicate, Self::InFlight, Self::Retried, Self::Rejected, Self::Parked];

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::InFlight => "in_flight",
            Self::Retried => "retried",
            Self::Rejected => "rejected",
            Self::Parked => "parked",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
