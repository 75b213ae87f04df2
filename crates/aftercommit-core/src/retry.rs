//! How often and how late a failing message is tried again.

use std::time::Duration;

use crate::subscription::ConfigError;

/// What follows after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another attempt, not before this much time.
    After(Duration),
    /// The attempts are used up.
    Exhausted,
}

/// The delays between the attempts of one message, per (consumer, message id). Failures are
/// counted in the database, so a restart, another instance or a forged header changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    delays: Vec<Duration>,
}

impl RetryPolicy {
    /// These delays, one after each failure; the failure after the last one ends it. No delay at
    /// all means that the first failure ends it.
    ///
    /// # Errors
    /// [`ConfigError`] when a delay is zero: that would be a hot loop.
    pub fn new(delays: impl Into<Vec<Duration>>) -> Result<Self, ConfigError> {
        let delays = delays.into();
        if delays.iter().any(Duration::is_zero) {
            return Err(ConfigError::Zero { what: "retry delay" });
        }
        Ok(Self { delays })
    }

    /// What follows after the `failures`th failure (from 1).
    #[must_use]
    pub fn next(&self, failures: u32) -> Next {
        let index = usize::try_from(failures.max(1) - 1).unwrap_or(usize::MAX);
        self.delays.get(index).map_or(Next::Exhausted, |delay| Next::After(*delay))
    }

    /// The delays, in order.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// How many attempts a message has: the first one included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.delays.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The longest time between the first and the last attempt. What remembers a message must
    /// remember it longer.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.delays.iter().fold(Duration::ZERO, |sum, delay| sum.saturating_add(*delay))
    }
}

impl Default for RetryPolicy {
    /// 30 seconds, 5 minutes, 30 minutes: the fourth failure ends it.
    fn default() -> Self {
        Self { delays: [30, 300, 1800].map(Duration::from_secs).to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_failure_ends_the_default() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.attempts(), 4);
        assert_eq!(policy.next(1), Next::After(Duration::from_secs(30)));
        assert_eq!(policy.next(3), Next::After(Duration::from_secs(1800)));
        assert_eq!(policy.next(4), Next::Exhausted);
        assert_eq!(policy.next(u32::MAX), Next::Exhausted);
    }

    #[test]
    fn a_zero_delay_is_refused() {
        assert!(RetryPolicy::new([Duration::ZERO]).is_err());
        assert_eq!(RetryPolicy::new([]).unwrap().next(1), Next::Exhausted);
    }
}
