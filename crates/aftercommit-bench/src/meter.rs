//! The stopwatch of one run, the same for product and yardstick.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::process::cpu;

/// Runs from the first delivery to the last confirmed one.
#[derive(Debug)]
pub struct Meter {
    messages: usize,
    first: OnceLock<Reading>,
    last: OnceLock<Reading>,
    confirmed: AtomicUsize,
    moments: Option<Mutex<Vec<(u64, Instant)>>>,
    done: CancellationToken,
}

#[derive(Debug)]
struct Reading {
    at: Instant,
    cpu: Duration,
}

impl Reading {
    fn now() -> Self {
        Self { at: Instant::now(), cpu: cpu().unwrap_or_default() }
    }
}

impl Meter {
    /// A meter for so many messages.
    #[must_use]
    pub fn new(messages: usize) -> Self {
        Self {
            messages,
            first: OnceLock::new(),
            last: OnceLock::new(),
            confirmed: AtomicUsize::new(0),
            moments: None,
            done: CancellationToken::new(),
        }
    }

    /// A meter that also keeps when each message was confirmed.
    #[must_use]
    pub fn with_moments(messages: usize) -> Self {
        Self { moments: Some(Mutex::new(Vec::with_capacity(messages))), ..Self::new(messages) }
    }

    /// Deliveries came in.
    pub fn received(&self) {
        self.first.get_or_init(Reading::now);
    }

    /// A message was confirmed to the broker. `sent_at` is what its publisher wrote into it.
    pub fn confirmed(&self, sent_at: u64) {
        if let Some(moments) = &self.moments {
            let now = Instant::now();
            moments.lock().unwrap_or_else(PoisonError::into_inner).push((sent_at, now));
        }
        if self.confirmed.fetch_add(1, Ordering::AcqRel) + 1 == self.messages {
            self.last.get_or_init(Reading::now);
            self.done.cancel();
        }
    }

    /// Ready once the last message was confirmed.
    #[must_use]
    pub const fn done(&self) -> &CancellationToken {
        &self.done
    }

    pub(crate) fn count(&self) -> usize {
        self.confirmed.load(Ordering::Acquire)
    }

    /// Time and processor time from the first delivery to the last confirmation; `None` before that.
    pub(crate) fn took(&self) -> Option<(Duration, Duration)> {
        let (first, last) = (self.first.get()?, self.last.get()?);
        Some((last.at.duration_since(first.at), last.cpu.saturating_sub(first.cpu)))
    }

    pub(crate) fn moments(&self) -> Vec<(u64, Instant)> {
        let moments = self.moments.as_ref().map(|moments| moments.lock());
        moments.map(|kept| kept.unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }
}
