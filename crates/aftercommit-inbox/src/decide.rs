//! A lane's work on its jobs: transaction after transaction, each result told at once.

use std::time::Duration;

use aftercommit_core::chain;
use tokio_util::sync::CancellationToken;

use crate::backoff;
use crate::job::Job;
use crate::lane::Lane;
use crate::rounds::{Group, Rounds};
use crate::store::{Fault, InboxStore, StoreError};
use crate::transaction::{Ended, Transaction};

impl<S: InboxStore> Lane<S> {
    /// Runs transactions until each job has a verdict. What a transaction decided is counted and
    /// settled before the next one begins, so that a slow neighbour withholds nobody's confirmation.
    pub(crate) async fn decide(&mut self, jobs: Vec<Job>) {
        let mut rounds = Rounds::new(jobs);
        while let Some(group) = rounds.next() {
            self.busy.touch();
            match self.transact(&group).await {
                Ended::Committed { verdicts, wrote } => {
                    self.is_back();
                    if wrote {
                        self.metrics.committed(group.jobs.len());
                    }
                    rounds.close(group, verdicts);
                }
                Ended::Failed { job, failed, .. } => {
                    // The connection is gone with the call; if no other can be had, it may have been
                    // the database's doing, and no attempt is charged for that.
                    match self.seated().await {
                        Ok(()) => rounds.after_failure(group, job, failed, self.work.is_batch()),
                        Err(error) => self.after_fault(&mut rounds, group, error, false).await,
                    }
                }
                Ended::Away { stated, error } => {
                    self.metrics.fault(error.fault());
                    if self.wait_for_database(&error).await {
                        rounds.after_away(group, stated, &error);
                    } else {
                        rounds.stop(group);
                    }
                }
                Ended::Store { error, handled } => {
                    self.after_fault(&mut rounds, group, error, handled).await;
                }
            }
            let done = rounds.take_done();
            self.conclude(done).await;
        }
        // What `next` set aside as lost.
        let done = rounds.take_done();
        self.conclude(done).await;
    }

    async fn transact(&mut self, group: &Group) -> Ended {
        if let Err(error) = self.seated().await {
            return Ended::Store { error, handled: false };
        }
        let transaction = Transaction {
            store: &*self.store,
            work: &self.work,
            consumer: &self.consumer,
            deadline: self.settings.deadline,
            busy: &self.busy,
        };
        if group.apart {
            transaction.apart(&mut self.seat, &group.jobs).await
        } else {
            transaction.together(&mut self.seat, &group.jobs).await
        }
    }

    /// `handled`: whether a handler ran before, which may have brought the database to say so.
    async fn after_fault(&mut self, rounds: &mut Rounds, mut group: Group, error: StoreError, handled: bool) {
        self.metrics.fault(error.fault());
        match error.fault() {
            Fault::Conflict => {
                tracing::debug!(error = %chain(&error), reruns = group.reruns, "the transaction conflicted");
                if after_a_moment(&self.stop, group.reruns).await {
                    rounds.after_conflict(group, handled, &error);
                } else {
                    rounds.stop(group);
                }
            }
            Fault::Aborted | Fault::Refused => rounds.blame(group, &error),
            Fault::Unavailable | Fault::Unknown | Fault::Unsafe | Fault::Schema => {
                if error.fault() == Fault::Unknown {
                    group.after_unknown_commit();
                }
                let is_back = self.wait_for_database(&error).await;
                // A setting or a table is nobody's doing; a connection may have died of what the handler did.
                let blamable = handled && matches!(error.fault(), Fault::Unavailable | Fault::Unknown);
                match is_back {
                    true if blamable => rounds.after_away(group, false, &error),
                    true => rounds.again(group),
                    false => rounds.stop(group),
                }
            }
        }
    }
}

/// A short wait between conflicting transactions. `false`: the consumer stops.
pub(crate) async fn after_a_moment(stop: &CancellationToken, step: u32) -> bool {
    let (first, most) = (Duration::from_millis(2), Duration::from_millis(500));
    let wait = tokio::time::sleep(backoff::delay(step, first, most));
    stop.run_until_cancelled(wait).await.is_some()
}
