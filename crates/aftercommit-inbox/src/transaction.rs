//! One transaction: claim, handle, prove, commit. What follows from its end is decided in
//! [`rounds`](crate::rounds).

use std::time::Duration;

use aftercommit_core::{ConsumerName, Failure, FailureClass, Message, MessageId};

use crate::handler::Handled;
use crate::job::{Failed, Job, Verdict};
use crate::store::{Fault, InboxStore, Session, StoreError};
use crate::work::{Broken, Work};

/// How a transaction ended. In every case but `Committed` nothing of it is in the database, except
/// that [`Fault::Unknown`] means that nobody knows.
pub(crate) enum Ended {
    /// Committed, or ended with nothing to commit; a verdict per job, in order.
    Committed(Vec<Verdict>),
    /// A handler failed; the index is of its job, where that is known.
    Failed { job: Option<usize>, failed: Failed },
    /// The database, or a handler's word about our own infrastructure.
    Store(StoreError),
}

/// What one transaction needs beside its session.
pub(crate) struct Transaction<'a, S: InboxStore> {
    pub(crate) store: &'a S,
    pub(crate) work: &'a Work<S>,
    pub(crate) consumer: &'a ConsumerName,
    pub(crate) deadline: Option<Duration>,
}

impl<S: InboxStore> Transaction<'_, S> {
    /// The first pass: one claim, all handlers, one proof, one commit, no savepoints. Any failure
    /// undoes everything.
    pub(crate) async fn together(&self, seat: &mut Option<S::Session>, jobs: &[Job]) -> Ended {
        let Some(mut session) = seat.take() else { return no_session() };
        match self.try_together(&mut session, jobs).await {
            Ok(verdicts) => {
                *seat = Some(session);
                Ended::Committed(verdicts)
            }
            Err(stop) => self.end(seat, session, stop).await,
        }
    }

    async fn try_together(&self, session: &mut S::Session, jobs: &[Job]) -> Result<Vec<Verdict>, Stop> {
        let fresh = self.claim(session, jobs).await?;
        let ours: Vec<usize> = (0..jobs.len()).filter(|&index| fresh[index]).collect();
        let mut verdicts: Vec<Verdict> = jobs.iter().map(|_| Verdict::Duplicate).collect();
        if ours.is_empty() {
            session.rollback().await?;
            return Ok(verdicts);
        }
        let messages: Vec<&Message> = ours.iter().map(|&index| &*jobs[index].message).collect();
        let handled = self
            .work
            .call(session.connection(), &messages, self.deadline)
            .await
            .map_err(|broken| Stop::from_call(broken, |index| ours[index]))?;
        for (&index, handled) in ours.iter().zip(handled) {
            verdicts[index] = verdict(handled);
        }
        self.finish(session, jobs, &ours).await?;
        Ok(verdicts)
    }

    /// The second pass: a savepoint around each handler, so that one failure costs one message.
    pub(crate) async fn apart(&self, seat: &mut Option<S::Session>, jobs: &[Job]) -> Ended {
        let Some(mut session) = seat.take() else { return no_session() };
        match self.try_apart(&mut session, jobs).await {
            Ok(verdicts) => {
                *seat = Some(session);
                Ended::Committed(verdicts)
            }
            Err(stop) => self.end(seat, session, stop).await,
        }
    }

    async fn try_apart(&self, session: &mut S::Session, jobs: &[Job]) -> Result<Vec<Verdict>, Stop> {
        let fresh = self.claim(session, jobs).await?;
        let mut verdicts = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            verdicts.push(if fresh[index] {
                self.one_apart(session, index, job).await?
            } else {
                Verdict::Duplicate
            });
        }
        let (mut ours, mut failed) = (Vec::new(), Vec::new());
        for (index, verdict) in verdicts.iter().enumerate() {
            match verdict {
                Verdict::Applied | Verdict::Rejected => ours.push(index),
                Verdict::Failed(_) => failed.push(&jobs[index].id),
                Verdict::Duplicate | Verdict::Busy | Verdict::Stopped => {}
            }
        }
        if ours.is_empty() {
            session.rollback().await?;
            return Ok(verdicts);
        }
        if !failed.is_empty() {
            failed.sort_unstable();
            session.unclaim(self.consumer, &failed).await?;
        }
        self.finish(session, jobs, &ours).await?;
        Ok(verdicts)
    }

    async fn one_apart(&self, session: &mut S::Session, index: usize, job: &Job) -> Result<Verdict, Stop> {
        session.savepoint().await?;
        let failed = match self.work.call(session.connection(), &[&*job.message], self.deadline).await {
            Ok(handled) => match session.release().await {
                Ok(()) => return Ok(handled.first().map_or(Verdict::Applied, |handled| verdict(*handled))),
                Err(error) if error.fault() == Fault::Aborted => {
                    Failed::transient("the handler went on after a failed statement")
                }
                Err(error) => return Err(error.into()),
            },
            Err(Broken::Failed { failure, .. }) => {
                if let Some(error) = self.fault_of(&failure) {
                    return Err(Stop::Store(error));
                }
                Failed::from(failure)
            }
            Err(cut) => return Err(Stop::from_call(cut, |_| index)),
        };
        session.rollback_to().await?;
        Ok(Verdict::Failed(failed))
    }

    async fn claim(&self, session: &mut S::Session, jobs: &[Job]) -> Result<Vec<bool>, StoreError> {
        session.begin().await?;
        // Sorted, because two batches with the same ids in different orders would deadlock.
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_unstable_by(|&a, &b| jobs[a].id.cmp(&jobs[b].id));
        let ids: Vec<&MessageId> = order.iter().map(|&index| &jobs[index].id).collect();
        let claimed = session.claim(self.consumer, &ids).await?;
        if claimed.len() != jobs.len() {
            return Err(StoreError::new(Fault::Aborted, "the store did not answer for every claim"));
        }
        let mut fresh = vec![false; jobs.len()];
        for (index, claimed) in order.into_iter().zip(claimed) {
            fresh[index] = claimed;
        }
        Ok(fresh)
    }

    async fn finish(&self, session: &mut S::Session, jobs: &[Job], ours: &[usize]) -> Result<(), StoreError> {
        let mut ids: Vec<&MessageId> = ours.iter().map(|&index| &jobs[index].id).collect();
        ids.sort_unstable();
        session.prove(self.consumer, &ids).await?;
        session.commit().await
    }

    /// What a handler's failure means for the whole transaction: the database's word, or the
    /// handler's own about our infrastructure. `None`: it is the message's failure.
    fn fault_of(&self, failure: &Failure) -> Option<StoreError> {
        if failure.class() == FailureClass::Infrastructure {
            return Some(StoreError::new(Fault::Unavailable, failure.chain()));
        }
        if failure.is_stated() {
            return None;
        }
        let fault = self.store.classify(failure.source()?)?;
        Some(StoreError::new(fault, failure.chain()))
    }

    async fn end(&self, seat: &mut Option<S::Session>, mut session: S::Session, stop: Stop) -> Ended {
        let (ended, usable) = match stop {
            Stop::Call(Broken::Failed { index, failure }) => match self.fault_of(&failure) {
                Some(error) => {
                    let usable = error.fault() == Fault::Conflict;
                    (Ended::Store(error), usable)
                }
                None => (Ended::Failed { job: index, failed: failure.into() }, true),
            },
            Stop::Call(Broken::Cut { index, error }) => {
                (Ended::Failed { job: index, failed: Failed::transient(error) }, false)
            }
            Stop::Store(error) => {
                // After an abort nobody knows what the handler did to the connection.
                let usable = matches!(error.fault(), Fault::Conflict | Fault::Refused);
                (Ended::Store(error), usable)
            }
        };
        if usable && session.rollback().await.is_ok() {
            *seat = Some(session);
        } else {
            session.discard();
        }
        ended
    }
}

/// Whether the inbox holds an id, asked with a claim that is undone. Waits for a transaction of
/// somebody else that has claimed it.
pub(crate) async fn is_known<S: InboxStore>(
    seat: &mut Option<S::Session>,
    consumer: &ConsumerName,
    id: &MessageId,
) -> Result<bool, StoreError> {
    let Some(mut session) = seat.take() else {
        return Err(StoreError::new(Fault::Unavailable, "no connection"));
    };
    let asked = async {
        session.begin().await?;
        let claimed = session.claim(consumer, &[id]).await?;
        session.rollback().await?;
        Ok(claimed != [true])
    }
    .await;
    match asked {
        Ok(known) => {
            *seat = Some(session);
            Ok(known)
        }
        Err(error) => {
            session.discard();
            Err(error)
        }
    }
}

enum Stop {
    Call(Broken),
    Store(StoreError),
}

impl Stop {
    /// Translates the index within the call to the index of the job.
    fn from_call(broken: Broken, job: impl Fn(usize) -> usize) -> Self {
        Self::Call(match broken {
            Broken::Failed { index, failure } => Broken::Failed { index: index.map(job), failure },
            Broken::Cut { index, error } => Broken::Cut { index: index.map(job), error },
        })
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

const fn verdict(handled: Handled) -> Verdict {
    match handled {
        Handled::Applied => Verdict::Applied,
        Handled::Rejected => Verdict::Rejected,
    }
}

fn no_session() -> Ended {
    Ended::Store(StoreError::new(Fault::Unavailable, "no connection"))
}
