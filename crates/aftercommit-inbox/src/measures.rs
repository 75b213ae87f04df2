//! What is counted. Labels come from closed sets and configuration, never from messages.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{ConsumerName, Delivery, FailureClass, Redelivered, SettleError, Settled};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::job::Sorted;
use crate::outcome::Outcome;
use crate::store::Fault;

/// The names of the metrics, for dashboards and tests.
pub mod name {
    /// Messages by `outcome`: the vocabulary of [`Outcome`](crate::Outcome).
    pub const MESSAGES: &str = "aftercommit_messages_total";
    /// Deliveries that were handed out before: flagged by the broker, or given back.
    pub const REDELIVERED: &str = "aftercommit_redelivered_total";
    /// Deliveries that were no longer ours when their turn came.
    pub const LOST: &str = "aftercommit_lost_deliveries_total";
    /// Messages handled under a made-up id, that is without deduplication.
    pub const MADE_UP: &str = "aftercommit_made_up_ids_total";
    /// Messages given up by failure `class`.
    pub const PARKED: &str = "aftercommit_parked_total";
    /// Publishes to the dead letters that were not confirmed.
    pub const NOT_PARKED: &str = "aftercommit_parking_failures_total";
    /// Settlements by `result`: staged, sent, confirmed, lost, failed.
    pub const SETTLED: &str = "aftercommit_settlements_total";
    /// Errors of the database by `fault`.
    pub const FAULTS: &str = "aftercommit_database_faults_total";
    /// Times that a lane paused because the database was away.
    pub const PAUSES: &str = "aftercommit_pauses_total";
    /// Messages per committed transaction.
    pub const BATCH: &str = "aftercommit_transaction_messages";
    /// Seconds from the first claim of a batch to its last commit.
    pub const SECONDS: &str = "aftercommit_batch_seconds";
    /// Deliveries received and not yet settled.
    pub const IN_FLIGHT: &str = "aftercommit_in_flight";
}

/// One consumer's instruments, looked up once.
#[derive(Clone)]
pub(crate) struct Measures(Arc<Instruments>);

struct Instruments {
    outcomes: Vec<(Outcome, Counter)>,
    parked: Vec<(FailureClass, Counter)>,
    faults: Vec<(Fault, Counter)>,
    settled: Vec<(&'static str, Counter)>,
    redelivered: Counter,
    lost: Counter,
    made_up: Counter,
    not_parked: Counter,
    pauses: Counter,
    batch: Histogram,
    seconds: Histogram,
    in_flight: Gauge,
}

impl Measures {
    pub(crate) fn new(consumer: &ConsumerName, product: &'static str) -> Self {
        let labels = [("consumer", consumer.as_str().to_owned()), ("product", product.to_owned())];
        let with = |key: &'static str, value: &'static str| {
            let mut labels = labels.to_vec();
            labels.push((key, value.to_owned()));
            labels
        };
        let classes = [FailureClass::Transient, FailureClass::Poison, FailureClass::Invariant];
        let faults = [
            Fault::Conflict,
            Fault::Unavailable,
            Fault::Aborted,
            Fault::Refused,
            Fault::Unknown,
            Fault::Unsafe,
            Fault::Schema,
        ];
        let settled = ["staged", "sent", "confirmed", "lost", "failed"];
        Self(Arc::new(Instruments {
            outcomes: Outcome::ALL
                .map(|outcome| (outcome, counter!(name::MESSAGES, &with("outcome", outcome.as_str()))))
                .to_vec(),
            parked: classes
                .map(|class| (class, counter!(name::PARKED, &with("class", class.as_str()))))
                .to_vec(),
            faults: faults
                .map(|fault| (fault, counter!(name::FAULTS, &with("fault", fault.as_str()))))
                .to_vec(),
            settled: settled
                .map(|result| (result, counter!(name::SETTLED, &with("result", result))))
                .to_vec(),
            redelivered: counter!(name::REDELIVERED, &labels),
            lost: counter!(name::LOST, &labels),
            made_up: counter!(name::MADE_UP, &labels),
            not_parked: counter!(name::NOT_PARKED, &labels),
            pauses: counter!(name::PAUSES, &labels),
            batch: histogram!(name::BATCH, &labels),
            seconds: histogram!(name::SECONDS, &labels),
            in_flight: gauge!(name::IN_FLIGHT, &labels),
        }))
    }

    pub(crate) fn received(&self, delivery: &Delivery) {
        self.0.in_flight.increment(1.0);
        if delivery.redelivered == Redelivered::Yes {
            self.0.redelivered.increment(1);
        }
    }

    fn dropped(&self, deliveries: usize) {
        self.0.in_flight.decrement(count(deliveries));
    }

    /// No longer ours when their turn came.
    pub(crate) fn lost(&self, deliveries: usize) {
        self.0.lost.increment(deliveries as u64);
        self.dropped(deliveries);
    }

    pub(crate) fn sorted(&self, sorted: &Sorted) {
        self.0.made_up.increment(sorted.made_up as u64);
        self.lost(sorted.lost);
        if sorted.made_up > 0 {
            tracing::warn!(
                messages = sorted.made_up,
                "messages without an id: deduplication is off for them"
            );
        }
    }

    pub(crate) fn committed(&self, messages: usize) {
        self.0.batch.record(count(messages));
    }

    pub(crate) fn decided(&self, took: Duration) {
        self.0.seconds.record(took.as_secs_f64());
    }

    pub(crate) fn outcome(&self, outcome: Outcome) {
        add(&self.0.outcomes, &outcome);
    }

    pub(crate) fn parked(&self, class: FailureClass) {
        self.outcome(Outcome::Parked);
        add(&self.0.parked, &class);
    }

    pub(crate) fn not_parked(&self) {
        self.0.not_parked.increment(1);
    }

    pub(crate) fn fault(&self, fault: Fault) {
        add(&self.0.faults, &fault);
    }

    pub(crate) fn paused(&self) {
        self.0.pauses.increment(1);
    }

    pub(crate) fn settled(&self, settled: &Result<Settled, SettleError>) {
        self.dropped(1);
        let result = match settled {
            Ok(Settled::Staged) => "staged",
            Ok(Settled::Sent) => "sent",
            Ok(Settled::Confirmed) => "confirmed",
            Err(SettleError::Lost { .. }) => "lost",
            Err(_) => "failed",
        };
        add(&self.0.settled, &result);
    }
}

fn add<K: PartialEq>(counters: &[(K, Counter)], key: &K) {
    if let Some((_, counter)) = counters.iter().find(|(known, _)| known == key) {
        counter.increment(1);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a batch has far fewer than 2^52 messages")]
const fn count(messages: usize) -> f64 {
    messages as f64
}
