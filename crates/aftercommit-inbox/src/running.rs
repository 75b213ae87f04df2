//! A consumer at work, and how it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aftercommit_core::{Delivery, Redelivered, Redelivery, Source, SourceError};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::dispatch::Dispatch;
use crate::error::ConsumerError;
use crate::health::Health;
use crate::measures::Measures;
use crate::pause::Gate;
use crate::settle::{Action, Settler};
use crate::waiting::Waiting;

/// A running consumer. Dropping it begins a graceful shutdown in the background.
#[derive(Debug)]
pub struct Running {
    health: Health,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ConsumerError>>,
}

/// What the supervising task holds.
pub(crate) struct Parts {
    pub(crate) source: Box<dyn Source>,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) lanes: TaskTracker,
    pub(crate) settler: Settler,
    pub(crate) gate: Gate,
    pub(crate) metrics: Measures,
    pub(crate) died: Died,
    pub(crate) waiting: Waiting,
    pub(crate) stop: CancellationToken,
    pub(crate) ended: CancellationToken,
    pub(crate) shutdown: Duration,
}

impl Running {
    pub(crate) fn new(parts: Parts, health: Health, prefetch: usize) -> Self {
        let stop = parts.stop.clone();
        let ended = parts.ended.clone();
        let task = tokio::spawn(async move {
            let _ended = ended.drop_guard();
            parts.supervise(prefetch).await
        });
        Self { health, stop, task }
    }

    /// Readiness and liveness.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Begins a graceful shutdown; [`ended`](Self::ended) waits for its end.
    pub fn shut_down(&self) {
        self.stop.cancel();
    }

    /// Waits until the consumer has ended, by a shutdown or an error.
    ///
    /// # Errors
    /// [`ConsumerError`].
    ///
    /// # Cancel safety
    /// Dropping the future begins a graceful shutdown in the background.
    pub async fn ended(mut self) -> Result<(), ConsumerError> {
        (&mut self.task).await.unwrap_or(Err(ConsumerError::LaneEnded))
    }

    /// Waits until `until` is ready, then shuts down; or until the consumer ends by itself.
    ///
    /// # Errors
    /// [`ConsumerError`].
    ///
    /// # Cancel safety
    /// Dropping the future begins a graceful shutdown in the background.
    pub async fn until(self, until: impl Future<Output = ()> + Send) -> Result<(), ConsumerError> {
        let ended = self.health.ended.clone();
        // Either of the two is enough; the shutdown is a no-op for a consumer that has ended.
        let _ = ended.run_until_cancelled(until).await;
        self.shut_down();
        self.ended().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Parts {
    async fn supervise(mut self, prefetch: usize) -> Result<(), ConsumerError> {
        // Also if the source panics: lanes that wait for ever would keep their connections.
        let _end = EndOfIntake(Arc::clone(&self.dispatch), self.stop.clone());
        let taken = self.take_in(prefetch).await;
        self.stop.cancel();
        let limit = Instant::now() + self.shutdown;
        let left = self.dispatch.close();
        tracing::info!(
            not_started = left.len(),
            "the consumer stops: no more is taken, what is open is finished"
        );
        self.settler.submit(given_back(left));
        let open = async {
            self.lanes.wait().await;
            self.settler.submit(given_back(self.dispatch.close()));
            self.settler.finished().await;
        };
        // Nothing is cut off here: after the limit the tasks go on, but nobody waits for them.
        let in_time = tokio::time::timeout_at(limit, open).await.is_ok();
        // Whatever is not settled goes back to the broker with this; it does so as well if the broker
        // does not answer and the connection just ends.
        let limit = limit.max(Instant::now() + CLOSING);
        let closed = tokio::time::timeout_at(limit, self.source.close()).await;
        taken?;
        if self.died.is_dead() {
            return Err(ConsumerError::LaneEnded);
        }
        match closed {
            Ok(closed) if in_time => closed?,
            _ => return Err(ConsumerError::ShutdownTimedOut(self.shutdown)),
        }
        tracing::info!("the consumer has stopped; everything it finished is settled");
        Ok(())
    }

    async fn take_in(&mut self, prefetch: usize) -> Result<(), SourceError> {
        loop {
            if self.stop.run_until_cancelled(self.gate.opened()).await.is_none() {
                return Ok(());
            }
            let Some(received) = self.stop.run_until_cancelled(self.source.recv(prefetch)).await else {
                return Ok(());
            };
            for delivery in received? {
                self.metrics.received(&delivery);
                if delivery.redelivered == Redelivered::Yes {
                    self.waiting.came_again();
                }
                let void = self.dispatch.push(delivery);
                self.metrics.lost(void);
            }
        }
    }
}

fn given_back(deliveries: Vec<Delivery>) -> Vec<(Delivery, Action)> {
    deliveries.into_iter().map(|delivery| (delivery, Action::GiveBack(Redelivery::Now))).collect()
}

/// What closing the source may take even when the time for the shutdown is used up.
const CLOSING: Duration = Duration::from_secs(1);

/// Lets the lanes end when intake has ended, however it ended.
struct EndOfIntake(Arc<Dispatch>, CancellationToken);

impl Drop for EndOfIntake {
    fn drop(&mut self) {
        self.1.cancel();
        drop(self.0.close());
    }
}

/// Notices a lane that ends by a panic of our own: the consumer stops instead of going on with
/// fewer lanes than it says.
#[derive(Clone, Debug)]
pub(crate) struct Died {
    dead: Arc<AtomicBool>,
    stop: CancellationToken,
}

impl Died {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { dead: Arc::new(AtomicBool::new(false)), stop }
    }

    pub(crate) fn watch(&self) -> Watch {
        Watch(Some(self.clone()))
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }
}

pub(crate) struct Watch(Option<Died>);

impl Watch {
    pub(crate) fn ended_well(mut self) {
        self.0 = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(died) = &self.0 {
            died.dead.store(true, Ordering::SeqCst);
            died.stop.cancel();
        }
    }
}
