//! From a verdict to what the broker is told.

use std::time::{Duration, SystemTime};

use aftercommit_core::{Delivery, Diagnostics, FailureClass, Next, Redelivery};

use crate::decide::after_a_moment;
use crate::job::{Failed, Job, Verdict};
use crate::lane::Lane;
use crate::outcome::Outcome;
use crate::settle::Action;
use crate::store::{Failures, Fault, InboxStore, Session as _, StoreError};
use crate::transaction::is_known;

/// How long a message waits that conflicted too often.
const BUSY_DELAY: Duration = Duration::from_secs(1);

impl<S: InboxStore> Lane<S> {
    /// Settles what was decided: confirmations first, since counting a failure may have to wait for
    /// the database. Failures are counted here, on the lane's connection, after its transaction has
    /// ended.
    pub(crate) async fn conclude(&mut self, decided: Vec<(Job, Verdict)>) {
        let mut actions = Vec::with_capacity(decided.len());
        let mut failures = Vec::new();
        for (job, verdict) in decided {
            match verdict {
                Verdict::Applied => self.confirm(job, Outcome::Applied, &mut actions),
                Verdict::Rejected => self.confirm(job, Outcome::Rejected, &mut actions),
                Verdict::Duplicate => self.confirm(job, Outcome::Duplicate, &mut actions),
                Verdict::Busy => self.give_back(job, Redelivery::After(BUSY_DELAY), &mut actions),
                Verdict::Stopped => self.give_back(job, Redelivery::Now, &mut actions),
                Verdict::Failed(failed) => failures.push((job, failed)),
            }
        }
        self.settler.submit(actions);
        for (job, failed) in failures {
            let mut actions = Vec::new();
            self.fail(job, failed, &mut actions).await;
            self.settler.submit(actions);
        }
    }

    /// A message that its handler cannot read. One that the inbox knows is a duplicate whatever
    /// today's code thinks of its body: what is done is never parked.
    pub(crate) async fn recall(&mut self, job: Job, failed: Failed) {
        let known = self.ask(&job).await;
        let verdict = match known {
            Some(true) => Verdict::Duplicate,
            Some(false) => Verdict::Failed(failed),
            None => Verdict::Stopped,
        };
        self.conclude(vec![(job, verdict)]).await;
    }

    fn confirm(&self, job: Job, outcome: Outcome, actions: &mut Vec<(Delivery, Action)>) {
        tracing::debug!(consumer = %self.consumer, message_id = %job.id, outcome = outcome.as_str(), "handled");
        let mut outcome = outcome;
        for delivery in job.deliveries {
            self.metrics.outcome(outcome);
            let known = outcome == Outcome::Duplicate;
            actions.push((delivery, if known { Action::Duplicate } else { Action::Committed }));
            // Further deliveries of the same id in the same batch.
            outcome = Outcome::Duplicate;
        }
    }

    fn give_back(&self, job: Job, when: Redelivery, actions: &mut Vec<(Delivery, Action)>) {
        let when = match when {
            Redelivery::Now => Redelivery::Now,
            Redelivery::After(delay) => Redelivery::After(spread(delay.min(self.longest_delay))),
        };
        for delivery in job.deliveries {
            // The broker hands it out anew by itself, and what becomes of it is counted then.
            if delivery.is_lost() {
                self.metrics.lost(1);
                continue;
            }
            self.metrics.outcome(Outcome::Retried);
            actions.push((delivery, Action::GiveBack(when)));
        }
    }

    async fn fail(&mut self, job: Job, failed: Failed, actions: &mut Vec<(Delivery, Action)>) {
        let Some(failures) = self.count(&job, &failed.error).await else {
            return self.give_back(job, Redelivery::Now, actions);
        };
        let next = if failed.class.is_retryable() {
            self.settings.retry.next(failures.count)
        } else {
            Next::Exhausted
        };
        match next {
            Next::After(delay) => {
                tracing::warn!(
                    consumer = %self.consumer, message_id = %job.id, attempt = failures.count,
                    class = failed.class.as_str(), error = %failed.error, delay = ?delay, "failed; given back"
                );
                self.give_back(job, Redelivery::After(delay), actions);
            }
            // Somebody else may have applied it while our transaction failed: what is done is never
            // parked.
            Next::Exhausted => match self.ask(&job).await {
                Some(true) => self.confirm(job, Outcome::Duplicate, actions),
                Some(false) => self.park(job, failed, failures, actions),
                None => self.give_back(job, Redelivery::Now, actions),
            },
        }
    }

    fn park(&self, job: Job, failed: Failed, failures: Failures, actions: &mut Vec<(Delivery, Action)>) {
        tracing::error!(
            consumer = %self.consumer, message_id = %job.id, attempts = failures.count,
            class = failed.class.as_str(), error = %failed.error, "failed for good; goes to the dead letters"
        );
        let mut diagnostics = Diagnostics::new(self.consumer.clone(), failed.class, failed.error);
        diagnostics.message_id = Some(job.id.as_str().to_owned());
        diagnostics.attempts = failures.count;
        diagnostics.first_failed_at = Some(failures.first_at);
        diagnostics.last_failed_at = Some(failures.last_at);
        for delivery in job.deliveries {
            actions.push((
                delivery,
                Action::Park { diagnostics: diagnostics.clone(), id: Some(job.id.clone()) },
            ));
        }
    }

    /// A message without a usable id: nothing can be counted for it, and nothing can be claimed.
    pub(crate) fn judge_nameless(&self, (delivery, failed): (Delivery, Failed)) -> (Delivery, Action) {
        tracing::error!(consumer = %self.consumer, error = %failed.error, "no usable id; goes to the dead letters");
        let mut diagnostics = Diagnostics::new(self.consumer.clone(), FailureClass::Poison, failed.error);
        // No row of the database knows this message, so the process's clock has to do.
        let now = Some(SystemTime::now().into());
        diagnostics.first_failed_at = now;
        diagnostics.last_failed_at = now;
        (delivery, Action::Park { diagnostics, id: None })
    }

    /// Whether the inbox knows a message. `None`: the consumer stops.
    async fn ask(&mut self, job: &Job) -> Option<bool> {
        let mut conflicts = 0;
        loop {
            let known = match self.seated().await {
                Ok(()) => is_known::<S>(&mut self.seat, &self.consumer, &job.id).await,
                Err(error) => Err(error),
            };
            match known {
                Ok(known) => {
                    self.is_back();
                    return Some(known);
                }
                Err(error) if self.may_go_on(&error, &mut conflicts).await => {}
                Err(_) => return None,
            }
        }
    }

    /// Counts a failure. `None`: the consumer stops, and the message is given back without.
    async fn count(&mut self, job: &Job, error: &str) -> Option<Failures> {
        let mut conflicts = 0;
        loop {
            let counted = match self.seated().await {
                Ok(()) => self.try_count(job, error).await,
                Err(error) => Err(error),
            };
            match counted {
                Ok(failures) => {
                    self.is_back();
                    return Some(failures);
                }
                Err(error) if self.may_go_on(&error, &mut conflicts).await => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits out a conflict or an outage. `false`: the consumer stops.
    async fn may_go_on(&mut self, error: &StoreError, conflicts: &mut u32) -> bool {
        if error.fault() != Fault::Conflict {
            return self.wait_for_database(error).await;
        }
        *conflicts += 1;
        after_a_moment(&self.stop, *conflicts).await
    }

    async fn try_count(&mut self, job: &Job, error: &str) -> Result<Failures, StoreError> {
        let Some(mut session) = self.seat.take() else {
            return Err(StoreError::new(Fault::Unavailable, "no connection"));
        };
        match session.record_failure(&self.consumer, &job.id, error).await {
            Ok(failures) => {
                self.seat = Some(session);
                Ok(failures)
            }
            Err(error) => {
                session.discard();
                Err(error)
            }
        }
    }
}

/// Up to a tenth less, so that messages that failed together do not come back together.
fn spread(delay: Duration) -> Duration {
    use rand::RngExt as _;
    delay.mul_f64(rand::rng().random_range(0.9..=1.0))
}
