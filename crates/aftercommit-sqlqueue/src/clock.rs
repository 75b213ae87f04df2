//! The one place where the time comes from.

use std::time::{Duration, SystemTime};

/// Milliseconds since 1970 by the system's clock: SQLite has no server whose clock could be asked, and every process on
/// one file runs on the same machine.
///
/// The clock may jump. Forward, leases end early: their messages are handed out again and are duplicates. Back, leases and
/// delays would last longer by the jump; whoever reads the queue finds them within a second, by their beginning in the
/// future, and lets them last from then on as long as they were meant to last in all.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    millis(since)
}

/// A duration as the tables have it.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
