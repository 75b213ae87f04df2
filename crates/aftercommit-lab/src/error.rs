use aftercommit::core::BoxError;

/// Why an experiment or the demonstration could not be run. What it found out is never an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// It was asked for in a way that cannot work.
    #[error("{0}")]
    Usage(String),
    /// This build was made without a product or database.
    #[error("{what} is not in this build: build it again with `--features {feature}`")]
    NotCompiled {
        /// The product or database.
        what: String,
        /// The feature that brings it.
        feature: &'static str,
    },
    /// A server does not answer.
    #[error("{what}")]
    Away {
        /// Which one, and where.
        what: String,
        /// Why it did not work.
        #[source]
        source: Option<BoxError>,
    },
    /// A server, a file or a process is not as it must be.
    #[error("{what}")]
    Failed {
        /// What was being done, and where.
        what: String,
        /// Why it did not work.
        #[source]
        source: Option<BoxError>,
    },
    /// Somebody interrupted it. What it had made is removed.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), source: None }
    }

    /// For `map_err`: what was being done.
    pub(crate) fn doing<E: Into<BoxError>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Failed { what, source: Some(source.into()) }
    }

    /// As [`doing`](Self::doing), for a server that does not answer.
    #[cfg(feature = "postgres")]
    pub(crate) fn away<E: Into<BoxError>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Away { what, source: Some(source.into()) }
    }

    /// Whether the same call may succeed later without anybody changing it: a server may be back.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Interrupted)
    }
}
