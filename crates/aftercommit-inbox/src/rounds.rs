//! From a batch to a verdict for each job: which transaction follows the one that just ended.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backoff;
use crate::job::{Failed, Job, Verdict};
use crate::lane::Lane;
use crate::store::{Fault, InboxStore, StoreError};
use crate::transaction::{Ended, Transaction};

/// The most messages in a transaction with savepoints: PostgreSQL keeps 64 of them cheaply.
const MOST_APART: usize = 50;

/// How often a transaction is run again after a deadlock or serialization failure before its
/// messages are given back, so that a lane is never caught in one conflict for good.
const MOST_RERUNS: u32 = 16;

/// Jobs that go through one transaction together, and how.
struct Group {
    jobs: Vec<Job>,
    apart: bool,
    reruns: u32,
    /// A COMMIT of these jobs was not answered: what is a duplicate now was committed by us.
    unknown: bool,
}

impl Group {
    const fn together(jobs: Vec<Job>) -> Self {
        Self { jobs, apart: false, reruns: 0, unknown: false }
    }
}

/// What has been decided and what is still to do.
struct Rounds {
    todo: VecDeque<Group>,
    done: Vec<(Job, Verdict)>,
}

impl<S: InboxStore> Lane<S> {
    /// Runs transactions until each job has a verdict.
    pub(crate) async fn decide(&mut self, jobs: Vec<Job>) -> Vec<(Job, Verdict)> {
        let mut rounds = Rounds { todo: VecDeque::new(), done: Vec::with_capacity(jobs.len()) };
        if !jobs.is_empty() {
            rounds.todo.push_back(Group::together(jobs));
        }
        while let Some(group) = rounds.todo.pop_front() {
            let ended = self.transact(&group).await;
            match ended {
                Ended::Committed(verdicts) => {
                    self.strikes = 0;
                    self.metrics.committed(group.jobs.len());
                    rounds.close(group, verdicts);
                }
                Ended::Failed { job, failed } => {
                    rounds.after_failure(group, job, failed, self.work.is_batch())
                }
                Ended::Store(error) => self.after_fault(&mut rounds, group, error).await,
            }
        }
        rounds.done
    }

    async fn transact(&mut self, group: &Group) -> Ended {
        if self.seat.is_none()
            && let Err(error) = self.reopen().await
        {
            return Ended::Store(error);
        }
        let transaction = Transaction {
            store: &*self.store,
            work: &self.work,
            consumer: &self.consumer,
            deadline: self.settings.deadline,
        };
        if group.apart {
            transaction.apart(&mut self.seat, &group.jobs).await
        } else {
            transaction.together(&mut self.seat, &group.jobs).await
        }
    }

    async fn after_fault(&mut self, rounds: &mut Rounds, mut group: Group, error: StoreError) {
        self.metrics.fault(error.fault());
        match error.fault() {
            Fault::Conflict if group.reruns < MOST_RERUNS => {
                tracing::debug!(error = %error, rerun = group.reruns + 1, "the transaction conflicted and is run again");
                let (first, most) = (Duration::from_millis(2), Duration::from_millis(500));
                tokio::time::sleep(backoff::delay(group.reruns, first, most)).await;
                group.reruns += 1;
                rounds.todo.push_front(group);
            }
            Fault::Conflict => {
                tracing::warn!(error = %error, messages = group.jobs.len(), "conflicts do not end; the messages are given back");
                rounds.close_all(group, || Verdict::Busy);
            }
            Fault::Aborted | Fault::Refused => rounds.blame(group, &error),
            Fault::Unavailable | Fault::Unknown | Fault::Unsafe | Fault::Schema => {
                group.unknown |= error.fault() == Fault::Unknown;
                if self.wait_for_database(&error).await {
                    rounds.todo.push_front(group);
                } else {
                    rounds.close_all(group, || Verdict::Stopped);
                    for group in std::mem::take(&mut rounds.todo) {
                        rounds.close_all(group, || Verdict::Stopped);
                    }
                }
            }
        }
    }
}

impl Rounds {
    fn close(&mut self, group: Group, verdicts: Vec<Verdict>) {
        for (job, verdict) in group.jobs.into_iter().zip(verdicts) {
            let verdict = match verdict {
                Verdict::Duplicate if group.unknown => Verdict::Applied,
                other => other,
            };
            self.done.push((job, verdict));
        }
    }

    fn close_all(&mut self, group: Group, verdict: impl Fn() -> Verdict) {
        self.done.extend(group.jobs.into_iter().map(|job| (job, verdict())));
    }

    /// A handler failed and nothing was committed: one message alone has its verdict, a batch is
    /// taken apart.
    fn after_failure(&mut self, mut group: Group, job: Option<usize>, failed: Failed, batch: bool) {
        if group.jobs.len() == 1 {
            self.close(group, vec![Verdict::Failed(failed)]);
        } else if batch {
            self.halve(group);
        } else if group.apart {
            // The call cost the connection: that message has its verdict, the others go on.
            let index = job.filter(|&index| index < group.jobs.len());
            match index {
                Some(index) => {
                    let job = group.jobs.remove(index);
                    self.done.push((job, Verdict::Failed(failed)));
                    self.todo.push_front(group);
                }
                None => self.singly(group),
            }
        } else {
            let unknown = group.unknown;
            self.split(group.jobs, MOST_APART, |jobs| Group {
                apart: true,
                unknown,
                ..Group::together(jobs)
            });
        }
    }

    /// The transaction was broken or refused and nobody knows by which message.
    fn blame(&mut self, group: Group, error: &StoreError) {
        if group.jobs.len() == 1 {
            let failed = Failed::transient(with_sources(error));
            self.close(group, vec![Verdict::Failed(failed)]);
        } else if group.apart {
            self.singly(group);
        } else {
            self.halve(group);
        }
    }

    fn halve(&mut self, group: Group) {
        let half = group.jobs.len().div_ceil(2);
        let unknown = group.unknown;
        self.split(group.jobs, half, |jobs| Group { unknown, ..Group::together(jobs) });
    }

    fn singly(&mut self, group: Group) {
        let unknown = group.unknown;
        self.split(group.jobs, 1, |jobs| Group { unknown, ..Group::together(jobs) });
    }

    fn split(&mut self, mut jobs: Vec<Job>, size: usize, group: impl Fn(Vec<Job>) -> Group) {
        let mut parts = Vec::new();
        while !jobs.is_empty() {
            let rest = jobs.split_off(size.min(jobs.len()));
            parts.push(group(std::mem::replace(&mut jobs, rest)));
        }
        for part in parts.into_iter().rev() {
            self.todo.push_front(part);
        }
    }
}

/// An error with everything below it, in one line.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
