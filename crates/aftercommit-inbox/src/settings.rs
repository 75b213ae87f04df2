//! What a consumer can be told, and what cannot work.

use std::time::Duration;

use aftercommit_core::{ConfigError, IdPolicy, RetryPolicy};

/// Settings of a consumer. The defaults suit a service that writes a few rows per message.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) lanes: Option<usize>,
    pub(crate) max_batch: usize,
    pub(crate) max_wait: Duration,
    pub(crate) deadline: Option<Duration>,
    pub(crate) shutdown: Duration,
    pub(crate) check_every: Duration,
    pub(crate) stuck_after: Duration,
    pub(crate) ids: IdPolicy,
    pub(crate) retry: RetryPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lanes: None,
            max_batch: 50,
            max_wait: Duration::ZERO,
            deadline: Some(Duration::from_secs(60)),
            shutdown: Duration::from_secs(30),
            check_every: Duration::from_secs(60),
            stuck_after: Duration::from_secs(900),
            ids: IdPolicy::default(),
            retry: RetryPolicy::default(),
        }
    }
}

/// The most lanes that are chosen without being asked for.
const DEFAULT_LANES: usize = 4;

/// The longest that a batch may be told to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Lanes and prefetch, worked out and checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) lanes: usize,
    pub(crate) prefetch: u16,
}

impl Settings {
    /// Works out how many lanes and how much prefetch there will be.
    ///
    /// # Errors
    /// [`ConfigError`] naming the setting that is 0, larger than the database allows, or too small
    /// for another.
    pub(crate) fn sizes(&self, max_sessions: usize, prefetch: Option<u16>) -> Result<Sizes, ConfigError> {
        for (what, zero) in [
            ("lanes", self.lanes == Some(0)),
            ("max batch", self.max_batch == 0),
            ("the handler's deadline", self.deadline == Some(Duration::ZERO)),
            ("the time for shutdown", self.shutdown.is_zero()),
            ("the time between topology checks", self.check_every.is_zero()),
            ("the time after which a lane counts as stuck", self.stuck_after.is_zero()),
        ] {
            if zero {
                return Err(ConfigError::Zero { what });
            }
        }
        self.check_times()?;
        let most = max_sessions.max(1);
        let lanes = self.lanes.unwrap_or_else(|| most.min(DEFAULT_LANES));
        if lanes > most {
            return Err(ConfigError::TooLarge {
                what: "lanes (the pool's size less two is the most)",
                found: lanes,
                most,
            });
        }
        let least = lanes.saturating_mul(self.max_batch);
        let prefetch = match prefetch {
            Some(given) => given,
            None => u16::try_from(least.saturating_mul(2)).unwrap_or(u16::MAX),
        };
        if usize::from(prefetch) < least {
            return Err(ConfigError::TooSmall {
                what: "prefetch",
                found: prefetch.into(),
                least,
                because: "lanes × max batch",
            });
        }
        Ok(Sizes { lanes, prefetch })
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        if self.max_wait > LONGEST_WAIT {
            let reason = format!("a message would wait {:?} for a full batch", self.max_wait);
            return Err(ConfigError::Invalid { what: "max wait", reason });
        }
        match self.deadline {
            Some(deadline) if deadline >= self.stuck_after => Err(ConfigError::Invalid {
                what: "the time after which a lane counts as stuck",
                reason: format!(
                    "{:?} is not longer than the handler's deadline of {deadline:?}: a slow handler would \
                     look like a stuck lane",
                    self.stuck_after
                ),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_follows_lanes_and_batch() {
        let settings = Settings { lanes: Some(3), max_batch: 10, ..Settings::default() };
        assert_eq!(settings.sizes(8, None), Ok(Sizes { lanes: 3, prefetch: 60 }));
        assert_eq!(settings.sizes(8, Some(30)), Ok(Sizes { lanes: 3, prefetch: 30 }));
        assert!(matches!(settings.sizes(8, Some(29)), Err(ConfigError::TooSmall { least: 30, .. })));
        assert!(matches!(settings.sizes(2, None), Err(ConfigError::TooLarge { most: 2, .. })));
    }

    #[test]
    fn times_that_contradict_each_other_are_refused() {
        let deadline = Some(Duration::from_secs(900));
        for settings in [
            Settings { deadline, ..Settings::default() },
            Settings { max_wait: Duration::MAX, ..Settings::default() },
        ] {
            assert!(matches!(settings.sizes(8, None), Err(ConfigError::Invalid { .. })), "{settings:?}");
        }
    }

    #[test]
    fn zero_is_refused() {
        for settings in [
            Settings { lanes: Some(0), ..Settings::default() },
            Settings { max_batch: 0, ..Settings::default() },
            Settings { deadline: Some(Duration::ZERO), ..Settings::default() },
            Settings { check_every: Duration::ZERO, ..Settings::default() },
            Settings { stuck_after: Duration::ZERO, ..Settings::default() },
        ] {
            assert!(matches!(settings.sizes(8, None), Err(ConfigError::Zero { .. })), "{settings:?}");
        }
    }
}
