//! Waiting for a condition, with a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again and again until the answer is `Ok`; after `limit` the last `Err` is the panic's text.
///
/// # Panics
///
/// When the limit has passed.
///
/// # Cancel safety
///
/// As that of `ask`.
pub async fn until<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    limit: Duration,
    mut ask: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + limit;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(last) => assert!(Instant::now() < end, "{what}: not within {limit:?}: {last}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// As [`until`], for a plain yes or no.
///
/// # Panics
///
/// When the limit has passed.
///
/// # Cancel safety
///
/// Cancel safe.
pub async fn until_true(what: &str, limit: Duration, mut ask: impl FnMut() -> bool) {
    until(what, limit, || std::future::ready(if ask() { Ok(()) } else { Err("no".to_owned()) })).await;
}
