//! Whether a part works right now, as a value that can be read at any time.

use std::sync::{Arc, Mutex, PoisonError};

/// A part's own word on whether it works. Clones share one state; reading never waits for
/// anything but another reader or writer of the same few bytes.
#[derive(Clone, Debug)]
pub struct Signal {
    part: &'static str,
    down: Arc<Mutex<Option<String>>>,
}

impl Signal {
    /// A part that is not up yet, and why.
    #[must_use]
    pub fn new(part: &'static str, reason: impl Into<String>) -> Self {
        Self { part, down: Arc::new(Mutex::new(Some(reason.into()))) }
    }

    /// Which part speaks.
    #[must_use]
    pub const fn part(&self) -> &'static str {
        self.part
    }

    /// It works.
    pub fn set_up(&self) {
        self.write(None);
    }

    /// It does not work, and why. The reason must not contain secrets.
    pub fn set_down(&self, reason: impl Into<String>) {
        self.write(Some(reason.into()));
    }

    /// Whether it works.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.reason().is_none()
    }

    /// Why it does not work; `None` if it does.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, state: Option<String>) {
        *self.down.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_state() {
        let signal = Signal::new("source", "connecting");
        let other = signal.clone();
        assert_eq!(other.reason().as_deref(), Some("connecting"));
        signal.set_up();
        assert!(other.is_up());
        other.set_down("gone");
        assert_eq!(signal.reason().as_deref(), Some("gone"));
    }
}
