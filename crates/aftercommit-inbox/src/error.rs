//! Why a consumer did not start or did not go on.

use std::time::Duration;

use aftercommit_core::{BrokerError, ConfigError, Finding, SourceError};

use crate::store::StoreError;

/// Why a consumer did not start or did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// A setting cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be used as it is.
    #[error("the database cannot be used")]
    Store(#[from] StoreError),
    /// The broker cannot be used as it is.
    #[error("the broker cannot be used")]
    Broker(#[from] BrokerError),
    /// Settings of the broker break the promise.
    #[error("the broker's settings break the promise: {}", list(.0))]
    Topology(Vec<Finding>),
    /// The source ended and cannot be mended by waiting.
    #[error("the source ended")]
    Source(#[from] SourceError),
    /// A lane ended by itself: a defect of this crate. What it held comes again.
    #[error("a lane ended unexpectedly; start the consumer again and report this")]
    LaneEnded,
    /// Work that was open at shutdown did not end in time. It goes on until the process ends; what
    /// it commits is confirmed by nobody, comes again, and is a duplicate then.
    #[error("work was still open {0:?} after the shutdown began")]
    ShutdownTimedOut(Duration),
}

impl ConsumerError {
    /// Whether starting again later may succeed without anybody changing a setting.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Config(_) | Self::Topology(_) => false,
            Self::Store(error) => error.is_retryable(),
            Self::Broker(error) => error.is_retryable(),
            Self::Source(_) | Self::LaneEnded | Self::ShutdownTimedOut(_) => true,
        }
    }
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
