//! From a batch to a verdict for each job: which transaction follows the one that just ended.

use std::collections::VecDeque;

use aftercommit_core::chain;

use crate::job::{Failed, Job, Verdict};
use crate::store::{Fault, StoreError};

/// The most messages in a transaction with savepoints: PostgreSQL keeps 64 of them cheaply.
const MOST_APART: usize = 50;

/// How often a transaction of several messages is run again after a conflict before it is halved:
/// the smaller it is, the less it can conflict with.
const RERUNS_BEFORE_HALVING: u32 = 4;

/// How often one message alone is run again after a conflict over its claim before it is given back, so that a lane
/// is never caught in one conflict for good.
const MOST_RERUNS: u32 = 16;

/// The same after a conflict that came when its handler had run. That may be the handler's own doing, so in the end it
/// counts as the message's failure; far more often than the worst contention conflicts in a row.
const MOST_HANDLED_RERUNS: u32 = 48;

/// How often the database may be away once a handler has run, and be back at once, before the messages are taken one by
/// one; alone, before it counts as the message's failure: there are statements that end the connection each time.
const MOST_AWAY: u32 = 3;

/// Jobs that go through one transaction together, and how.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) jobs: Vec<Job>,
    pub(crate) apart: bool,
    pub(crate) reruns: u32,
    away: u32,
    /// A COMMIT of these jobs was not answered: what is a duplicate now was committed by us.
    unknown: bool,
}

impl Group {
    const fn together(jobs: Vec<Job>) -> Self {
        Self { jobs, apart: false, reruns: 0, away: 0, unknown: false }
    }

    /// Jobs of this group in a smaller one.
    const fn part(&self, jobs: Vec<Job>, apart: bool) -> Self {
        Self { jobs, apart, reruns: 0, away: self.away, unknown: self.unknown }
    }

    pub(crate) fn after_unknown_commit(&mut self) {
        self.unknown = true;
    }
}

/// What is still to do and what was decided since somebody last asked.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    todo: VecDeque<Group>,
    done: Vec<(Job, Verdict)>,
}

impl Rounds {
    pub(crate) fn new(jobs: Vec<Job>) -> Self {
        let todo = if jobs.is_empty() { VecDeque::new() } else { [Group::together(jobs)].into() };
        Self { todo, done: Vec::new() }
    }

    /// The next group. Jobs whose deliveries are no longer ours are not run: the broker hands them
    /// out anew, perhaps to somebody who waits for our claim.
    pub(crate) fn next(&mut self) -> Option<Group> {
        while let Some(mut group) = self.todo.pop_front() {
            let (lost, ours) = std::mem::take(&mut group.jobs).into_iter().partition(Job::is_lost);
            self.done.extend(Vec::into_iter(lost).map(|job| (job, Verdict::Stopped)));
            group.jobs = ours;
            if !group.jobs.is_empty() {
                return Some(group);
            }
        }
        None
    }

    /// What was decided since the last call.
    pub(crate) fn take_done(&mut self) -> Vec<(Job, Verdict)> {
        std::mem::take(&mut self.done)
    }

    pub(crate) fn again(&mut self, group: Group) {
        self.todo.push_front(group);
    }

    pub(crate) fn close(&mut self, group: Group, verdicts: Vec<Verdict>) {
        for (job, verdict) in group.jobs.into_iter().zip(verdicts) {
            let verdict = match verdict {
                Verdict::Duplicate if group.unknown => Verdict::Applied,
                other => other,
            };
            self.done.push((job, verdict));
        }
    }

    /// Gives back the group and, if the consumer stops, everything after it.
    pub(crate) fn stop(&mut self, group: Group) {
        let groups = std::iter::once(group).chain(std::mem::take(&mut self.todo));
        let jobs: Vec<Job> = groups.flat_map(|group| group.jobs).collect();
        self.done.extend(jobs.into_iter().map(|job| (job, Verdict::Stopped)));
    }

    /// The transaction conflicted: again, then smaller, in the end given back, or failed if a handler had run.
    pub(crate) fn after_conflict(&mut self, mut group: Group, handled: bool, error: &StoreError) {
        group.reruns += 1;
        if group.jobs.len() > 1 && group.reruns > RERUNS_BEFORE_HALVING {
            self.halve(group);
        } else if handled && group.reruns > MOST_HANDLED_RERUNS {
            let verdicts =
                group.jobs.iter().map(|_| Verdict::Failed(Failed::transient(chain(error)))).collect();
            self.close(group, verdicts);
        } else if !handled && group.reruns > MOST_RERUNS {
            tracing::warn!(
                messages = group.jobs.len(),
                "conflicts do not end; given back without an attempt"
            );
            self.done.extend(group.jobs.into_iter().map(|job| (job, Verdict::Busy)));
        } else {
            self.again(group);
        }
    }

    /// The database was away once a handler had run, and now it is not. It may be so for what that handler does alone (a
    /// foreign table, a temporary file too large, a statement that kills its server process), so it must not hold up
    /// others for good. What the handler itself states is believed for a message alone as long as it says so.
    ///
    /// A database that takes connections and commits nothing spends no attempt by this: the attempt is counted in a
    /// commit of its own, and waits for that.
    pub(crate) fn after_away(&mut self, mut group: Group, stated: bool, error: &StoreError) {
        group.away += 1;
        if group.away <= MOST_AWAY {
            self.again(group);
        } else if group.jobs.len() > 1 {
            group.away = 0;
            self.singly(group);
        } else if stated {
            self.again(group);
        } else {
            let failed = Failed::transient(chain(error));
            self.close(group, vec![Verdict::Failed(failed)]);
        }
    }

    /// A handler failed and nothing was committed: one message alone has its verdict, a batch is
    /// taken apart.
    pub(crate) fn after_failure(
        &mut self,
        mut group: Group,
        job: Option<usize>,
        failed: Failed,
        batch: bool,
    ) {
        if group.jobs.len() == 1 {
            self.close(group, vec![Verdict::Failed(failed)]);
        } else if batch {
            self.halve(group);
        } else if group.apart {
            // The call cost the connection: that message has its verdict, the others go on.
            match job.filter(|&index| index < group.jobs.len()) {
                Some(index) => {
                    self.done.push((group.jobs.remove(index), Verdict::Failed(failed)));
                    self.again(group);
                }
                None => self.singly(group),
            }
        } else {
            self.split(group, MOST_APART, true);
        }
    }

    /// The transaction was broken or refused and nobody knows by which message.
    pub(crate) fn blame(&mut self, group: Group, error: &StoreError) {
        debug_assert!(matches!(error.fault(), Fault::Aborted | Fault::Refused));
        if group.jobs.len() == 1 {
            let failed = Failed::transient(chain(error));
            self.close(group, vec![Verdict::Failed(failed)]);
        } else if group.apart {
            self.singly(group);
        } else {
            self.halve(group);
        }
    }

    fn halve(&mut self, group: Group) {
        let half = group.jobs.len().div_ceil(2);
        self.split(group, half, false);
    }

    fn singly(&mut self, group: Group) {
        self.split(group, 1, false);
    }

    fn split(&mut self, mut group: Group, size: usize, apart: bool) {
        let mut jobs = std::mem::take(&mut group.jobs);
        let mut parts = Vec::new();
        while !jobs.is_empty() {
            let rest = jobs.split_off(size.min(jobs.len()));
            parts.push(group.part(std::mem::replace(&mut jobs, rest), apart));
        }
        for part in parts.into_iter().rev() {
            self.todo.push_front(part);
        }
    }
}

#[cfg(test)]
mod tests;
