use std::time::Duration;

use rand::RngExt;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(1500);
/// What lived this long was no failed attempt.
const HEALTHY: Duration = Duration::from_secs(5);

/// Pauses between attempts that grow to 1.5 s, jittered so that instances do not come back in step.
pub(crate) struct Backoff {
    next: Duration,
    opened: Option<Instant>,
}

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { next: FIRST, opened: None }
    }

    /// An attempt succeeded. The pauses begin anew only if it lasts.
    pub(crate) fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// How long to wait now.
    pub(crate) fn pause(&mut self) -> Duration {
        if self.opened.take().is_some_and(|opened| opened.elapsed() >= HEALTHY) {
            self.next = FIRST;
        }
        let pause = self.next.mul_f64(rand::rng().random_range(0.5..=1.0));
        self.next = (self.next * 2).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_bound_and_begin_anew_after_a_healthy_time() {
        let mut backoff = Backoff::new();
        backoff.opened();
        assert!(backoff.pause() <= FIRST);
        for _ in 0..10 {
            // Opened and lost at once is no success.
            backoff.opened();
            backoff.pause();
        }
        let pause = backoff.pause();
        assert!(pause > LONGEST / 2 - Duration::from_millis(1) && pause <= LONGEST, "{pause:?}");
        backoff.opened();
        tokio::time::advance(HEALTHY).await;
        assert!(backoff.pause() <= FIRST);
    }
}
