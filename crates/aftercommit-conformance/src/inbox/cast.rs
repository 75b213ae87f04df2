//! A consumer before and after it is started.

use std::time::Duration;

use aftercommit_core::{BoxError, RetryPolicy};
use aftercommit_inbox::{Consumer, Health, InboxStore, Outcome, Running};

use super::scene::{Done, ensure};
use super::tally::Tally;
use crate::faults::{FaultyStore, Outage};

/// A running consumer and what can be seen of it.
pub(crate) struct Player {
    pub(crate) running: Running,
    pub(crate) health: Health,
    pub(crate) tally: Tally,
    pub(crate) outage: Outage,
}

impl Player {
    /// Fails unless the consumer counted exactly so many of an outcome.
    pub(crate) fn counted(&self, outcome: Outcome, count: u64) -> Done {
        let found = self.tally.outcome(outcome);
        ensure!(found == count, "{found} messages were {outcome}, and it should be {count}");
        Ok(())
    }
}

/// A consumer before it is started, and the switch of its database.
pub(crate) struct Cast<S: InboxStore> {
    pub(crate) consumer: Consumer<FaultyStore<S>>,
    pub(crate) outage: Outage,
}

impl<S: InboxStore> Cast<S> {
    pub(crate) fn set(
        self,
        change: impl FnOnce(Consumer<FaultyStore<S>>) -> Consumer<FaultyStore<S>>,
    ) -> Self {
        Self { consumer: change(self.consumer), outage: self.outage }
    }
}

/// The delays of trials: three attempts, in tenths of a second.
pub(crate) const DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(400)];

pub(crate) fn quick<S: InboxStore>(consumer: Consumer<S>) -> Result<Consumer<S>, BoxError> {
    Ok(consumer
        .retry(RetryPolicy::new(DELAYS)?)
        .check_every(Duration::from_millis(200))
        .shutdown_within(Duration::from_secs(10)))
}
