//! What is published, and what must become of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aftercommit_core::{Destination, Message, Outgoing, Publisher};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::QUEUES;
use super::world::World;

/// Ids of one batch, and the time between two batches: 200 ids a second, 400 messages.
const BATCH: usize = 20;
const EVERY: Duration = Duration::from_millis(100);

/// What a message makes its handler do.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Write one row.
    Plain,
    /// The same after two failed attempts.
    Flaky,
    /// Call it an invariant violation.
    Invariant,
    /// Nothing: the body is no JSON.
    Broken,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Body {
    pub(super) kind: Kind,
}

pub(super) fn kind(number: usize) -> Kind {
    match number % 40 {
        7 => Kind::Broken,
        19 => Kind::Invariant,
        11 | 31 => Kind::Flaky,
        _ => Kind::Plain,
    }
}

pub(super) fn id(number: usize) -> String {
    format!("evt-{number:07}")
}

/// As many ids may wait to be applied before publishing pauses: draining must not take longer than the faults.
const MOST_WAITING: usize = 2000;

/// How many ids were published, confirmed on both queues, and how many are known to be applied.
#[derive(Debug, Default)]
pub(super) struct Load {
    published: AtomicUsize,
    applied: AtomicUsize,
}

impl Load {
    pub(super) fn published(&self) -> usize {
        self.published.load(Ordering::SeqCst)
    }

    pub(super) fn note_applied(&self, count: usize) {
        self.applied.store(count, Ordering::SeqCst);
    }

    fn is_far_ahead(&self) -> bool {
        self.published() > self.applied.load(Ordering::SeqCst) + MOST_WAITING + self.published() / 20
    }

    /// The published ids that must have an effect, or that must be dead letters.
    pub(super) fn ids(&self, parked: bool) -> impl Iterator<Item = String> {
        let all = 0..self.published();
        all.filter(move |number| matches!(kind(*number), Kind::Broken | Kind::Invariant) == parked).map(id)
    }
}

/// Publishes batches until told to stop; a batch that was begun is finished.
pub(super) async fn publish(load: Arc<Load>, world: Arc<World>, stop: CancellationToken) {
    let publisher = world.publisher().await;
    let mut next = Instant::now();
    while stop.run_until_cancelled(sleep_until(next)).await.is_some() {
        next = Instant::now() + EVERY;
        // A twentieth of all is parked and never applied.
        if load.is_far_ahead() {
            continue;
        }
        let batch = load.published()..load.published() + BATCH;
        let forwards = batch.clone().map(|number| send(&*publisher, QUEUES[0], number));
        let backwards = batch.clone().rev().map(|number| send(&*publisher, QUEUES[1], number));
        tokio::join!(join_all(forwards), join_all(backwards));
        load.published.store(batch.end, Ordering::SeqCst);
    }
}

/// As often as it takes, under the same id.
async fn send(publisher: &dyn Publisher, queue: &str, number: usize) {
    let kind = kind(number);
    let body = match kind {
        Kind::Broken => "{".to_owned(),
        _ => serde_json::to_string(&Body { kind }).expect("plain JSON"),
    };
    let message = Message::new(body).with_id(id(number));
    let outgoing = Outgoing::new(Destination::new("").with_routing_key(queue), message);
    while let Err(error) = publisher.publish(outgoing.clone()).await {
        assert!(error.is_retryable(), "{error}");
        sleep(Duration::from_millis(100)).await;
    }
}
