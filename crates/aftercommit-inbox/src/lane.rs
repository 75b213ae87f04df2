//! A lane: one connection, one batch at a time.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{ConsumerName, Delivery};
use tokio_util::sync::CancellationToken;

use crate::backoff;
use crate::dispatch::Dispatch;
use crate::health::Busy;
use crate::job;
use crate::measures::Measures;
use crate::pause::Gate;
use crate::rounds::with_sources;
use crate::settings::Settings;
use crate::settle::Settler;
use crate::store::{Fault, InboxStore, StoreError};
use crate::work::Work;

/// One connection and everything a batch needs on its way through it.
pub(crate) struct Lane<S: InboxStore> {
    pub(crate) index: usize,
    pub(crate) store: Arc<S>,
    pub(crate) work: Arc<Work<S>>,
    pub(crate) consumer: ConsumerName,
    pub(crate) settings: Arc<Settings>,
    /// The longest delay that the source can give a message back for.
    pub(crate) longest_delay: Duration,
    pub(crate) metrics: Measures,
    pub(crate) gate: Gate,
    pub(crate) stop: CancellationToken,
    /// The lane's connection, while it has one that is in a known state.
    pub(crate) seat: Option<S::Session>,
    /// Times in a row that the database was away.
    pub(crate) strikes: u32,
}

impl<S: InboxStore> Lane<S> {
    /// Works until the dispatch is closed. Nobody aborts this future: what is in a transaction is
    /// finished.
    pub(crate) async fn run(mut self, dispatch: Arc<Dispatch>, settler: Settler, busy: Busy) {
        loop {
            let taken = dispatch.take(self.index, self.settings.max_batch, self.settings.max_wait).await;
            let Some(deliveries) = taken else { return };
            let _busy = busy.enter();
            let actions = self.process(deliveries).await;
            settler.submit(actions);
        }
    }

    async fn process(&mut self, deliveries: Vec<Delivery>) -> Vec<(Delivery, crate::settle::Action)> {
        let mut sorted = job::sort(deliveries, &self.settings.ids, |message| self.work.decode(message));
        self.metrics.sorted(&sorted);
        let started = tokio::time::Instant::now();
        let decided = self.decide(std::mem::take(&mut sorted.jobs)).await;
        if !decided.is_empty() {
            self.metrics.decided(started.elapsed());
        }
        let unreadable = self.recall(sorted.unreadable).await;
        let mut actions = self.judge(decided).await;
        actions.extend(self.judge(unreadable).await);
        actions.extend(sorted.nameless.into_iter().map(|nameless| self.judge_nameless(nameless)));
        actions
    }

    /// Takes a connection from the pool.
    pub(crate) async fn reopen(&mut self) -> Result<(), StoreError> {
        self.seat = Some(self.store.open().await?);
        Ok(())
    }

    /// Waits with consumption paused until there is a connection again. `false`: the consumer stops
    /// and nothing more is decided.
    pub(crate) async fn wait_for_database(&mut self, error: &StoreError) -> bool {
        let reason = with_sources(error);
        let unknown = error.fault() == Fault::Unknown;
        tracing::warn!(
            consumer = %self.consumer, lane = self.index, fault = error.fault().as_str(), error = %reason,
            unknown, "the database is away; consumption pauses, no attempt is spent"
        );
        let _paused = self.gate.pause(&reason);
        self.metrics.paused();
        loop {
            // The first time at once: a connection that died while idle is no outage.
            if self.strikes > 0 {
                let (first, most) = (Duration::from_millis(100), Duration::from_secs(5));
                let wait = tokio::time::sleep(backoff::delay(self.strikes - 1, first, most));
                if self.stop.run_until_cancelled(wait).await.is_none() {
                    return false;
                }
            }
            self.strikes = self.strikes.saturating_add(1);
            match self.reopen().await {
                Ok(()) => {
                    tracing::info!(consumer = %self.consumer, lane = self.index, "the database is back");
                    return true;
                }
                Err(error) => tracing::warn!(lane = self.index, error = %with_sources(&error), "still away"),
            }
            if self.stop.is_cancelled() {
                return false;
            }
        }
    }
}
