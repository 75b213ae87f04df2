//! One transaction: claim, handle, prove, commit. What follows from its end is decided in
//! [`rounds`](crate::rounds).

use std::time::Duration;

use aftercommit_core::{ConsumerName, Failure, FailureClass, Message, MessageId};

use crate::handler::Handled;
use crate::health::Busy;
use crate::job::{Failed, Job, Verdict};
use crate::store::{Fault, InboxStore, Session, StoreError};
use crate::work::{Broken, Work};

/// How a transaction ended. In every case but `Committed` nothing of it is in the database, except
/// that [`Fault::Unknown`] means that nobody knows.
pub(crate) enum Ended {
    /// Committed, or ended with nothing to commit; a verdict per job, in order.
    Committed { verdicts: Vec<Verdict>, wrote: bool },
    /// A handler failed; the index is of its job, where that is known.
    /// `cut`: in the middle of a call, so that the connection was closed.
    Failed { job: Option<usize>, failed: Failed, cut: bool },
    /// A handler says, or met an error that says, that our own infrastructure is away.
    Away { stated: bool, error: StoreError },
    /// The database, in a statement of ours or a conflict in one of the handler's. `handled`: after a handler ran, so
    /// that it may be the handler's doing.
    Store { error: StoreError, handled: bool },
}

/// What one transaction needs beside its session.
pub(crate) struct Transaction<'a, S: InboxStore> {
    pub(crate) store: &'a S,
    pub(crate) work: &'a Work<S>,
    pub(crate) consumer: &'a ConsumerName,
    pub(crate) deadline: Option<Duration>,
    pub(crate) busy: &'a Busy,
}

impl<S: InboxStore> Transaction<'_, S> {
    /// The first pass: one claim, all handlers, one proof, one commit, no savepoints. Any failure
    /// undoes everything.
    pub(crate) async fn together(&self, seat: &mut Option<S::Session>, jobs: &[Job]) -> Ended {
        let Some(mut session) = seat.take() else { return no_session() };
        match self.try_together(&mut session, jobs).await {
            Ok((verdicts, wrote)) => {
                *seat = Some(session);
                Ended::Committed { verdicts, wrote }
            }
            Err(stop) => self.end(seat, session, stop).await,
        }
    }

    async fn try_together(
        &self,
        session: &mut S::Session,
        jobs: &[Job],
    ) -> Result<(Vec<Verdict>, bool), Stop> {
        let fresh = self.claim(session, jobs).await.map_err(Stop::Claim)?;
        let ours: Vec<usize> = (0..jobs.len()).filter(|&index| fresh[index]).collect();
        let mut verdicts: Vec<Verdict> = jobs.iter().map(|_| Verdict::Duplicate).collect();
        if ours.is_empty() {
            session.rollback().await.map_err(Stop::Claim)?;
            return Ok((verdicts, false));
        }
        let messages: Vec<&Message> = ours.iter().map(|&index| &*jobs[index].message).collect();
        let handled = self
            .work
            .call(session.connection(), &messages, self.deadline, self.busy)
            .await
            .map_err(|broken| Stop::from_call(broken, |index| ours[index]))?;
        for (&index, handled) in ours.iter().zip(handled) {
            verdicts[index] = verdict(handled);
        }
        self.finish(session, jobs, &ours).await?;
        Ok((verdicts, true))
    }

    /// The second pass: a savepoint around each handler, so that one failure costs one message.
    pub(crate) async fn apart(&self, seat: &mut Option<S::Session>, jobs: &[Job]) -> Ended {
        let Some(mut session) = seat.take() else { return no_session() };
        match self.try_apart(&mut session, jobs).await {
            Ok((verdicts, wrote)) => {
                *seat = Some(session);
                Ended::Committed { verdicts, wrote }
            }
            Err(stop) => self.end(seat, session, stop).await,
        }
    }

    async fn try_apart(&self, session: &mut S::Session, jobs: &[Job]) -> Result<(Vec<Verdict>, bool), Stop> {
        let fresh = self.claim(session, jobs).await.map_err(Stop::Claim)?;
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
            return Ok((verdicts, false));
        }
        if !failed.is_empty() {
            failed.sort_unstable();
            session.unclaim(self.consumer, &failed).await?;
        }
        self.finish(session, jobs, &ours).await?;
        Ok((verdicts, true))
    }

    async fn one_apart(&self, session: &mut S::Session, index: usize, job: &Job) -> Result<Verdict, Stop> {
        session.savepoint().await?;
        let failed =
            match self.work.call(session.connection(), &[&*job.message], self.deadline, self.busy).await {
                Ok(handled) => match session.release().await {
                    Ok(()) => {
                        return Ok(handled.first().map_or(Verdict::Applied, |handled| verdict(*handled)));
                    }
                    Err(error) if error.fault() == Fault::Aborted => {
                        // Where there is no way back to the savepoint, the handler ended the whole
                        // transaction. Whatever the store says then, it is not that the database is away.
                        let Ok(()) = session.rollback_to().await else { return Err(error.into()) };
                        let failed = Failed::transient("the handler went on after a failed statement");
                        return Ok(Verdict::Failed(failed));
                    }
                    Err(error) => return Err(error.into()),
                },
                Err(Broken::Failed { failure, .. }) => {
                    if self.fault_of(&failure).is_some() {
                        return Err(Stop::Call(Broken::Failed { index: Some(index), failure }));
                    }
                    Failed::from(failure)
                }
                Err(cut) => return Err(Stop::from_call(cut, |_| index)),
            };
        session.rollback_to().await?;
        Ok(Verdict::Failed(failed))
    }

    async fn claim(&self, session: &mut S::Session, jobs: &[Job]) -> Result<Vec<bool>, StoreError> {
        // Sorted, because two batches with the same ids in different orders would deadlock.
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_unstable_by(|&a, &b| jobs[a].id.cmp(&jobs[b].id));
        let ids: Vec<&MessageId> = order.iter().map(|&index| &jobs[index].id).collect();
        let claimed = claim(session, self.consumer, &ids).await?;
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
        let ended = self.ended(stop);
        let usable = match &ended {
            Ended::Failed { cut, .. } => !cut,
            // After an abort nobody knows what the handler did to the connection.
            Ended::Store { error, .. } => matches!(error.fault(), Fault::Conflict | Fault::Refused),
            Ended::Committed { .. } | Ended::Away { .. } => false,
        };
        if !usable {
            session.discard();
            return ended;
        }
        match session.rollback().await {
            Ok(()) => *seat = Some(session),
            Err(_) => session.discard(),
        }
        ended
    }

    fn ended(&self, stop: Stop) -> Ended {
        match stop {
            Stop::Call(Broken::Failed { index, failure }) => match self.fault_of(&failure) {
                Some(error) if error.fault() == Fault::Conflict => Ended::Store { error, handled: true },
                Some(error) => Ended::Away { stated: failure.is_stated(), error },
                None => Ended::Failed { job: index, failed: failure.into(), cut: false },
            },
            Stop::Call(Broken::Cut { index, error }) => {
                Ended::Failed { job: index, failed: Failed::transient(error), cut: true }
            }
            Stop::Claim(error) => Ended::Store { error, handled: false },
            Stop::Store(error) => Ended::Store { error, handled: true },
        }
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
        let claimed = claim(&mut session, consumer, &[id]).await?;
        session.rollback().await?;
        Ok(claimed == [false])
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

/// Begins a transaction and claims, with an answer for each id. No handler has run yet, so whatever
/// the database refuses here is no message's fault: a missing right or table stops consumption, it
/// does not make dead letters of a healthy stream.
async fn claim<S: Session>(
    session: &mut S,
    consumer: &ConsumerName,
    ids: &[&MessageId],
) -> Result<Vec<bool>, StoreError> {
    let claimed = async {
        session.begin().await?;
        session.claim(consumer, ids).await
    }
    .await
    .map_err(|error| match error.fault() {
        Fault::Refused | Fault::Aborted => {
            StoreError::new(Fault::Schema, "the inbox's own statement was refused").with_source(error)
        }
        _ => error,
    })?;
    if claimed.len() == ids.len() {
        return Ok(claimed);
    }
    let what = format!("the store answered for {} of {} claims", claimed.len(), ids.len());
    Err(StoreError::new(Fault::Schema, what))
}

enum Stop {
    /// Before any handler ran.
    Claim(StoreError),
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
    Ended::Store { error: StoreError::new(Fault::Unavailable, "no connection"), handled: false }
}
