//! Settling and parking, outside the lanes: no connection waits for a broker's answer.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{
    Delivery, Destination, Diagnostics, MessageId, PublishError, Publisher, Redelivery, SettleError, Settled,
    Signal, chain,
};
use futures_util::future::{BoxFuture, join_all};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff;
use crate::evidence::{Evidence, settle};
use crate::measures::Measures;
use crate::pause::{Gate, Paused};
use crate::waiting::Waiting;

/// What the broker is told about a delivery.
#[derive(Debug)]
pub(crate) enum Action {
    /// Confirm: the transaction committed.
    Committed,
    /// Confirm: the inbox holds it.
    Duplicate,
    /// Hand it out again.
    GiveBack(Redelivery),
    /// Copy it to the dead letters, then confirm it.
    Park { diagnostics: Diagnostics, id: Option<MessageId> },
}

/// Forgets the counters of a message; made by the consumer, which knows the store.
pub(crate) type Forget = Arc<dyn Fn(MessageId) -> BoxFuture<'static, ()> + Send + Sync>;

/// Settles whole batches at once, each in a task of its own.
#[derive(Clone)]
pub(crate) struct Settler {
    shared: Arc<Shared>,
}

struct Shared {
    publisher: Box<dyn Publisher>,
    dead_letter: Destination,
    metrics: Measures,
    tasks: TaskTracker,
    stop: CancellationToken,
    parking: Gate,
    forget: Forget,
    waiting: Waiting,
}

impl Settler {
    pub(crate) fn new(
        publisher: Box<dyn Publisher>,
        dead_letter: Destination,
        metrics: Measures,
        stop: CancellationToken,
        forget: Forget,
        waiting: Waiting,
    ) -> Self {
        let parking = Gate::new("dead letters");
        let tasks = TaskTracker::new();
        let shared = Shared { publisher, dead_letter, metrics, tasks, stop, parking, forget, waiting };
        Self { shared: Arc::new(shared) }
    }

    /// Down while a message cannot be parked.
    pub(crate) fn signal(&self) -> Signal {
        self.shared.parking.signal()
    }

    /// Settles a batch. Returns at once.
    pub(crate) fn submit(&self, actions: Vec<(Delivery, Action)>) {
        let mut quick = Vec::with_capacity(actions.len());
        for (delivery, action) in actions {
            if let Action::Park { diagnostics, id } = action {
                let shared = Arc::clone(&self.shared);
                self.shared.tasks.spawn(async move { shared.park(delivery, diagnostics, id).await });
            } else {
                quick.push((delivery, action));
            }
        }
        if !quick.is_empty() {
            let shared = Arc::clone(&self.shared);
            self.shared.tasks.spawn(async move {
                join_all(quick.into_iter().map(|(delivery, action)| shared.settle(delivery, action))).await;
            });
        }
    }

    /// Waits until everything submitted is settled.
    ///
    /// Cancel safe: the tasks go on.
    pub(crate) async fn finished(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    async fn settle(&self, delivery: Delivery, action: Action) {
        let settled = match action {
            Action::Committed => {
                let evidence = Evidence::committed(&delivery);
                settle(delivery, evidence).await
            }
            Action::Duplicate => {
                let evidence = Evidence::duplicate(&delivery);
                settle(delivery, evidence).await
            }
            Action::GiveBack(when) => {
                let given_back = delivery.give_back(when).await;
                if let (Ok(_), Redelivery::After(delay)) = (&given_back, when) {
                    self.waiting.given_back(delay);
                }
                given_back
            }
            // Parked elsewhere; unsettled here means that it comes again.
            Action::Park { .. } => return,
        };
        self.note(&settled);
    }

    fn note(&self, settled: &Result<Settled, SettleError>) {
        self.metrics.settled(settled);
        if let Err(error) = settled {
            // Not a failure of the message: it comes again and the inbox knows it.
            tracing::debug!(error = %chain(error), "not settled; the broker hands it out again");
        }
    }

    /// Publishes the dead letter until it is confirmed, then settles the original. A message that
    /// cannot be parked stays with the broker; others are not held up.
    async fn park(&self, delivery: Delivery, mut diagnostics: Diagnostics, id: Option<MessageId>) {
        let mut step = 0;
        let mut stuck: Option<Paused> = None;
        let receipt = loop {
            // After a reconnect the broker hands it out anew; this copy would only pile up.
            if delivery.is_lost() {
                return self.note(&Err(SettleError::lost("the connection ended before it was parked")));
            }
            let letter = diagnostics.park(&delivery.message, self.dead_letter.clone());
            match self.publisher.publish(letter).await {
                Ok(receipt) => break receipt,
                Err(error) => {
                    let reason = self.not_parked(&error, &mut diagnostics);
                    stuck.get_or_insert_with(|| self.parking.pause(&reason));
                }
            }
            let (first, most) = (Duration::from_millis(200), Duration::from_secs(30));
            let wait = tokio::time::sleep(backoff::delay(step, first, most));
            step += 1;
            if self.stop.run_until_cancelled(wait).await.is_none() {
                let given_back = delivery.give_back(Redelivery::Now).await;
                return self.note(&given_back);
            }
        };
        drop(stuck);
        self.metrics.parked(diagnostics.class);
        let evidence = Evidence::parked(&delivery, receipt);
        let settled = settle(delivery, evidence).await;
        let done = settled.is_ok();
        self.note(&settled);
        if let Some(id) = id.filter(|_| done) {
            (self.forget)(id).await;
        }
    }

    fn not_parked(&self, error: &PublishError, diagnostics: &mut Diagnostics) -> String {
        let reason = chain(error);
        tracing::error!(dead_letter = %self.dead_letter, error = %reason, "not parked; the original stays with the broker");
        self.metrics.not_parked();
        if matches!(error, PublishError::TooLarge { .. }) {
            // The message matters more than what we say of it.
            diagnostics.detail = diagnostics.detail.less();
        }
        reason
    }
}
