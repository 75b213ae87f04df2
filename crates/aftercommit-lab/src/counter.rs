use crate::role::Method;

/// A consumer as it is often written by hand. The experiment must fail with it; if it does not, it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counter {
    /// The broker is told before the commit: a crash between the two loses the message.
    ConfirmFirst,
    /// Effect and inbox row are committed one after the other: a crash between the two applies the effect twice.
    TwoTransactions,
    /// No inbox at all: a crash before the confirm applies the effect twice.
    NoInbox,
}

impl Counter {
    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmFirst => "confirm-first",
            Self::TwoTransactions => "two-transactions",
            Self::NoInbox => "no-inbox",
        }
    }

    pub(crate) const fn method(self) -> Method {
        match self {
            Self::ConfirmFirst => Method::ConfirmFirst,
            Self::TwoTransactions => Method::TwoTransactions,
            Self::NoInbox => Method::NoInbox,
        }
    }
}
