//! What waits until something of ours works again, counted, so that health tells the truth.

use aftercommit_core::Signal;
use tokio::sync::watch;

/// Counts who waits: lanes for the database, messages for the dead letters. Down while anybody does.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    waiting: watch::Sender<usize>,
    signal: Signal,
}

impl Gate {
    pub(crate) fn new(part: &'static str) -> Self {
        let signal = Signal::new(part, "not used yet");
        signal.set_up();
        Self { waiting: watch::Sender::new(0), signal }
    }

    pub(crate) fn signal(&self) -> Signal {
        self.signal.clone()
    }

    /// Closes the gate until the answer is dropped.
    pub(crate) fn pause(&self, reason: &str) -> Paused {
        // In one step: set down before, the last one to go could set it up again in between.
        self.waiting.send_modify(|waiting| {
            *waiting += 1;
            self.signal.set_down(reason);
        });
        Paused(self.clone())
    }

    /// Waits until nobody waits.
    pub(crate) async fn opened(&self) {
        // Fails only when the sender is gone, and we hold it.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting == 0).await;
    }
}

/// One who waits.
#[derive(Debug)]
#[must_use]
pub(crate) struct Paused(Gate);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| {
            *waiting -= 1;
            if *waiting == 0 {
                self.0.signal.set_up();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_signal_agrees_with_the_gate_whoever_comes_and_goes() {
        let gate = Gate::new("database");
        let come_and_go = |gate: &Gate| {
            for _ in 0..50_000 {
                let paused = gate.pause("away");
                assert!(!gate.signal.is_up(), "up although somebody waits");
                drop(paused);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| come_and_go(&gate));
            }
        });
        assert!(gate.signal.is_up());
    }

    #[tokio::test]
    async fn the_gate_opens_when_the_last_lane_goes_on() {
        let gate = Gate::new("database");
        let (first, second) = (gate.pause("away"), gate.pause("away"));
        assert!(gate.opened().now_or_never().is_none());
        drop(first);
        assert!(gate.opened().now_or_never().is_none());
        assert_eq!(gate.signal().reason().as_deref(), Some("away"));
        drop(second);
        gate.opened().await;
        assert!(gate.signal().is_up());
    }
}
