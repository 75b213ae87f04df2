//! Readiness and liveness, as library calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aftercommit_core::Signal;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::waiting::Waiting;

/// What a running consumer says about itself. Clones speak for the same consumer; reading waits for
/// nothing.
#[derive(Clone, Debug)]
pub struct Health {
    pub(crate) signals: Vec<Signal>,
    pub(crate) lanes: Vec<Busy>,
    pub(crate) waiting: Waiting,
    pub(crate) stuck_after: Duration,
    pub(crate) stop: CancellationToken,
    pub(crate) ended: CancellationToken,
}

/// Why a consumer does not work as it should: which part, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Complaint {
    /// The part: `source`, `prefetch`, `database`, `dead letters`, `topology`, `consumer`, `lane`.
    pub part: &'static str,
    /// The reason, without secrets.
    pub reason: String,
}

impl Health {
    /// Whether messages are being taken and handled right now. Empty: yes. False while the source is
    /// not subscribed, all places of the prefetch are taken by messages that wait for their next
    /// attempt, the database is away, a message cannot be parked, the topology breaks the promise, or
    /// the consumer stops.
    #[must_use]
    pub fn not_ready(&self) -> Vec<Complaint> {
        let mut complaints = self.not_alive();
        if complaints.is_empty() && self.stop.is_cancelled() {
            complaints.push(Complaint { part: "consumer", reason: "it is shutting down".into() });
        }
        let down = self
            .signals
            .iter()
            .filter_map(|signal| signal.reason().map(|reason| Complaint { part: signal.part(), reason }));
        complaints.extend(down);
        let full = self.waiting.complaint();
        complaints.extend(full.map(|reason| Complaint { part: "prefetch", reason }));
        complaints
    }

    /// Whether [`not_ready`](Self::not_ready) has nothing to say.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.not_ready().is_empty()
    }

    /// Whether a restart of the process is the only thing that can help. Empty: no. An outage of
    /// broker or database is not that: it heals by itself.
    #[must_use]
    pub fn not_alive(&self) -> Vec<Complaint> {
        if self.ended.is_cancelled() {
            return vec![Complaint { part: "consumer", reason: "it has ended".into() }];
        }
        let database_away = self.signals.iter().any(|s| s.part() == "database" && !s.is_up());
        let stuck = self.lanes.iter().filter_map(Busy::busy_for).filter(|busy| *busy > self.stuck_after);
        stuck
            .filter(|_| !database_away)
            .map(|busy| Complaint { part: "lane", reason: format!("no step forward for {busy:?}") })
            .collect()
    }

    /// Whether [`not_alive`](Self::not_alive) has nothing to say.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.not_alive().is_empty()
    }
}

/// When a busy lane last went forward: a transaction begun, a handler called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<Mutex<Option<Instant>>>);

impl Busy {
    pub(crate) fn enter(&self) -> BusyGuard {
        self.set(Some(Instant::now()));
        BusyGuard(self.clone())
    }

    /// Something went forward: what counts as stuck starts anew.
    pub(crate) fn touch(&self) {
        self.set(Some(Instant::now()));
    }

    fn busy_for(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed())
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

#[must_use]
pub(crate) struct BusyGuard(Busy);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

#[cfg(test)]
mod tests {
    use aftercommit_core::Capabilities;

    use super::*;

    fn health(signal: &Signal) -> Health {
        Health {
            signals: vec![signal.clone()],
            lanes: vec![Busy::default()],
            waiting: Waiting::new(&Capabilities::new("any", 1)),
            stuck_after: Duration::from_secs(60),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_lane_is_not_alive_unless_the_database_is_away() {
        let database = Signal::new("database", "away");
        let health = health(&database);
        let _busy = health.lanes[0].enter();
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(health.is_alive(), "an outage heals by itself");
        database.set_up();
        assert_eq!(health.not_alive()[0].part, "lane");
    }

    #[tokio::test]
    async fn a_part_that_is_down_is_named() {
        let source = Signal::new("source", "connecting");
        let health = health(&source);
        assert_eq!(health.not_ready()[0], Complaint { part: "source", reason: "connecting".into() });
        assert!(health.is_alive());
        source.set_up();
        assert!(health.is_ready());
        health.stop.cancel();
        assert!(!health.is_ready());
        health.ended.cancel();
        assert!(!health.is_alive());
    }
}
