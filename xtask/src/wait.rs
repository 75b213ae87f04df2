//! Waiting for a condition with a deadline.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Where progress is told.
pub(crate) type Say<'a> = &'a dyn Fn(&str);

/// Tells nothing: for tests.
pub(crate) const SILENT: Say<'static> = &|_| {};

/// Asks `ready` ten times a second; an error from it ends the waiting.
pub(crate) fn until(
    what: &str,
    limit: Duration,
    say: Say<'_>,
    mut ready: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let start = Instant::now();
    let mut told = 0;
    while !ready()? {
        let waited = start.elapsed();
        if waited >= limit {
            return Err(Error::new(format!("waited {} s in vain for {what}", limit.as_secs())));
        }
        if waited.as_secs() >= told + 5 {
            told = waited.as_secs();
            say(&format!("waiting for {what} ({told} s of {} s)", limit.as_secs()));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
