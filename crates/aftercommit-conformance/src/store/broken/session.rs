use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Failures, Fault, Session, StoreError};
use async_trait::async_trait;
use time::OffsetDateTime;

use super::Broken;

/// A session around another one, with one promise broken.
#[derive(Debug)]
pub struct BrokenSession<X: Session> {
    inner: Option<X>,
    broken: Broken,
    kept: Arc<Mutex<Vec<X>>>,
    /// How many sessions of the store are in a transaction.
    open: Arc<AtomicUsize>,
    is_open: bool,
    held: Option<(ConsumerName, Vec<MessageId>)>,
}

impl<X: Session> BrokenSession<X> {
    pub(super) const fn new(
        inner: X,
        broken: Broken,
        kept: Arc<Mutex<Vec<X>>>,
        open: Arc<AtomicUsize>,
    ) -> Self {
        Self { inner: Some(inner), broken, kept, open, is_open: false, held: None }
    }

    #[expect(clippy::expect_used, reason = "taken only at the end")]
    fn inner(&mut self) -> &mut X {
        self.inner.as_mut().expect("a session has its connection until it ends")
    }

    fn is(&self, broken: Broken) -> bool {
        self.broken == broken
    }

    fn consumer(&self, consumer: &ConsumerName) -> ConsumerName {
        let name = match self.broken {
            Broken::FoldsCase => consumer.as_str().to_lowercase(),
            Broken::ForgetsConsumers => "billing".to_owned(),
            _ => return consumer.clone(),
        };
        ConsumerName::new(name).unwrap_or_else(|_| consumer.clone())
    }

    fn id(&self, id: &MessageId) -> MessageId {
        let text = match self.broken {
            Broken::FoldsCase => id.as_str().to_lowercase(),
            Broken::CutsIds => id.as_str().chars().take(100).collect(),
            _ => return id.clone(),
        };
        MessageId::new(text).unwrap_or_else(|_| id.clone())
    }

    fn ids(&self, ids: &[&MessageId]) -> Vec<MessageId> {
        ids.iter().map(|id| self.id(id)).collect()
    }

    /// Proves what was claimed and commits.
    async fn commit_anyway(&mut self) -> Result<(), StoreError> {
        if let Some((consumer, ids)) = self.held.clone() {
            self.inner().connection();
            self.inner().prove(&consumer, &ids.iter().collect::<Vec<_>>()).await?;
        }
        self.inner().commit().await
    }

    fn ended(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl<X: Session + 'static> Session for BrokenSession<X> {
    type Connection = X::Connection;

    async fn begin(&mut self) -> Result<(), StoreError> {
        if self.is_open {
            let begun = self.inner().begin().await;
            return if self.is(Broken::BeginsTwice) { Ok(()) } else { begun };
        }
        if self.is(Broken::NeverWaits) && self.open.load(Ordering::SeqCst) > 0 {
            return Err(StoreError::new(Fault::Conflict, "somebody else is at work"));
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        self.is_open = true;
        self.held = None;
        self.inner().begin().await
    }

    async fn claim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<Vec<bool>, StoreError> {
        let (consumer, ids) = (self.consumer(consumer), self.ids(ids));
        let refs: Vec<_> = ids.iter().collect();
        let mut answers = self.inner().claim(&consumer, &refs).await?;
        let held = ids.iter().zip(&answers).filter(|(_, ours)| **ours).map(|(id, _)| id.clone()).collect();
        self.held = Some((consumer, held));
        match self.broken {
            Broken::ClaimsTwice => answers.fill(true),
            Broken::TurnsAnswersRound => answers.reverse(),
            Broken::ChokesOnDuplicates if answers.contains(&false) => {
                return Err(StoreError::new(Fault::Refused, "duplicate key"));
            }
            _ => {}
        }
        Ok(answers)
    }

    fn connection(&mut self) -> &mut X::Connection {
        self.inner().connection()
    }

    async fn savepoint(&mut self) -> Result<(), StoreError> {
        if self.is(Broken::SetsNoSavepoints) && self.is_open {
            return Ok(());
        }
        self.inner().savepoint().await
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        if self.is(Broken::SetsNoSavepoints) {
            return Ok(());
        }
        self.inner().release().await
    }

    async fn rollback_to(&mut self) -> Result<(), StoreError> {
        match self.broken {
            Broken::SetsNoSavepoints => Ok(()),
            Broken::RollsBackAll => {
                self.inner().rollback().await?;
                self.inner().begin().await
            }
            _ => self.inner().rollback_to().await,
        }
    }

    async fn unclaim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        if self.is(Broken::UnclaimsNothing) {
            return Ok(());
        }
        let (consumer, ids) = (self.consumer(consumer), self.ids(ids));
        let done = self.inner().unclaim(&consumer, &ids.iter().collect::<Vec<_>>()).await;
        if let Some((_, held)) = &mut self.held {
            held.retain(|id| !ids.contains(id));
        }
        if self.is(Broken::UnclaimsAnything) { Ok(()) } else { done }
    }

    async fn prove(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        let (mut consumer, mut ids) = (self.consumer(consumer), self.ids(ids));
        if let (Broken::ProvesTheWrongIds, Some((whose, held))) = (self.broken, &self.held) {
            (consumer, ids) = (whose.clone(), held.clone());
        }
        let proved = self.inner().prove(&consumer, &ids.iter().collect::<Vec<_>>()).await;
        if self.is(Broken::ProvesAlways) { Ok(()) } else { proved }
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        let committed = match self.broken {
            Broken::CommitsUnproved => self.commit_anyway().await,
            Broken::CommitsNothing => self.inner().rollback().await,
            _ => self.inner().commit().await,
        };
        if committed.is_ok() {
            self.ended();
        }
        match (self.broken, committed) {
            (Broken::SwallowsCommitErrors, Err(_)) => Ok(()),
            (Broken::MistakesRefusals, Err(error)) if error.fault() == Fault::Refused => {
                Err(StoreError::new(Fault::Unknown, "no answer"))
            }
            (_, committed) => committed,
        }
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.ended();
        match self.broken {
            Broken::RollbackCommits => match self.commit_anyway().await {
                Ok(()) => Ok(()),
                Err(_) => self.inner().rollback().await,
            },
            Broken::RollsBackAnything => self.inner().rollback().await.or(Ok(())),
            _ => self.inner().rollback().await,
        }
    }

    async fn record_failure(
        &mut self,
        consumer: &ConsumerName,
        id: &MessageId,
        error: &str,
    ) -> Result<Failures, StoreError> {
        let (consumer, id) = (self.consumer(consumer), self.id(id));
        match self.broken {
            Broken::CountsNothing => {
                let now = OffsetDateTime::now_utc();
                return Ok(Failures { count: 1, first_at: now, last_at: now });
            }
            Broken::ChokesOnNul if error.contains('\0') => {
                return Err(StoreError::new(Fault::Refused, "invalid byte"));
            }
            Broken::CountsTwice => drop(self.inner().record_failure(&consumer, &id, error).await?),
            _ => {}
        }
        let error = if self.is(Broken::LosesTexts) { "" } else { error };
        let mut failures = self.inner().record_failure(&consumer, &id, error).await?;
        if self.is(Broken::MovesFirstTimes) {
            failures.first_at = failures.last_at;
        }
        Ok(failures)
    }

    async fn record_start(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<u32, StoreError> {
        let (consumer, id) = (self.consumer(consumer), self.id(id));
        if self.is(Broken::MixesCounters) {
            self.inner().record_failure(&consumer, &id, "a start").await?;
        }
        if self.is(Broken::StartsTwice) {
            self.inner().record_start(&consumer, &id).await?;
        }
        let starts = self.inner().record_start(&consumer, &id).await?;
        Ok(if self.is(Broken::StartsHandled) { starts.max(1) } else { starts })
    }

    async fn forget_attempts(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<(), StoreError> {
        if self.is(Broken::ForgetsNothing) {
            return Ok(());
        }
        let (consumer, id) = (self.consumer(consumer), self.id(id));
        self.inner().forget_attempts(&consumer, &id).await
    }

    fn discard(mut self) {
        if let Some(inner) = self.inner.take_if(|_| self.broken != Broken::KeepsDropped) {
            inner.discard();
        }
    }
}

impl<X: Session> Drop for BrokenSession<X> {
    fn drop(&mut self) {
        self.ended();
        if self.broken == Broken::KeepsDropped {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).extend(self.inner.take());
        }
    }
}
