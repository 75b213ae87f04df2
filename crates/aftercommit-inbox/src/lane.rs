//! A lane: one connection, one batch at a time.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{ConsumerName, Delivery, chain};
use tokio_util::sync::CancellationToken;

use crate::backoff;
use crate::dispatch::Dispatch;
use crate::health::Busy;
use crate::job;
use crate::measures::Measures;
use crate::pause::{Gate, Paused};
use crate::settings::Settings;
use crate::settle::Settler;
use crate::store::{InboxStore, StoreError};
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
    /// Held from the first sign that the database is away until it has done something for us again.
    pub(crate) paused: Option<Paused>,
    pub(crate) settler: Settler,
    pub(crate) busy: Busy,
}

impl<S: InboxStore> Lane<S> {
    /// Works until the dispatch is closed. Nobody aborts this future: what is in a transaction is
    /// finished.
    pub(crate) async fn run(mut self, dispatch: Arc<Dispatch>) {
        loop {
            let taken = dispatch.take(self.index, self.settings.max_batch, self.settings.max_wait).await;
            let Some(deliveries) = taken else { return };
            let _busy = self.busy.enter();
            self.process(deliveries, &dispatch).await;
            // Nothing is known against the database any more: the next batch shall find out.
            self.paused = None;
        }
    }

    async fn process(&mut self, deliveries: Vec<Delivery>, dispatch: &Dispatch) {
        let mut sorted = job::sort(deliveries, &self.settings.ids, |message| self.work.decode(message));
        self.metrics.sorted(&sorted);
        let begun = dispatch.begin(&mut sorted);
        let nameless = std::mem::take(&mut sorted.nameless);
        self.settler.submit(nameless.into_iter().map(|nameless| self.judge_nameless(nameless)).collect());
        if !sorted.jobs.is_empty() {
            let started = tokio::time::Instant::now();
            self.decide(sorted.jobs).await;
            self.metrics.decided(started.elapsed());
        }
        for (job, failed) in sorted.unreadable {
            self.recall(job, failed).await;
        }
        dispatch.done(&begun);
    }

    /// Takes a connection from the pool, unless the lane has one.
    pub(crate) async fn seated(&mut self) -> Result<(), StoreError> {
        if self.seat.is_none() {
            self.seat = Some(self.store.open().await?);
        }
        Ok(())
    }

    /// The database did something for us.
    pub(crate) fn is_back(&mut self) {
        self.strikes = 0;
        if self.paused.take().is_some() {
            tracing::info!(consumer = %self.consumer, lane = self.index, "the database is back");
        }
    }

    /// Waits with consumption paused until there is a connection again. `false`: the consumer stops
    /// and nothing more is decided. The pause lasts until the database has done something for us.
    pub(crate) async fn wait_for_database(&mut self, error: &StoreError) -> bool {
        let reason = chain(error);
        // One connection that died, of old age perhaps, is no outage yet: another one is taken at once.
        if self.strikes > 0 {
            tracing::warn!(
                consumer = %self.consumer, lane = self.index, fault = error.fault().as_str(), error = %reason,
                "the database is away; consumption pauses"
            );
        } else {
            tracing::info!(
                consumer = %self.consumer, lane = self.index, fault = error.fault().as_str(), error = %reason,
                "the lane's connection is lost; it takes another one"
            );
        }
        if self.paused.is_none() {
            self.paused = Some(self.gate.pause(&reason));
            self.metrics.paused();
        }
        loop {
            self.busy.touch();
            // The first time at once: a connection that died while idle is no outage.
            if self.strikes > 0 {
                let (first, most) = (Duration::from_millis(100), Duration::from_secs(5));
                let wait = tokio::time::sleep(backoff::delay(self.strikes - 1, first, most));
                if self.stop.run_until_cancelled(wait).await.is_none() {
                    return false;
                }
            }
            self.strikes = self.strikes.saturating_add(1);
            let stop = self.stop.clone();
            match stop.run_until_cancelled(self.seated()).await {
                Some(Ok(())) => return true,
                Some(Err(error)) => {
                    tracing::warn!(lane = self.index, error = %chain(&error), "still away");
                }
                None => return false,
            }
        }
    }
}
