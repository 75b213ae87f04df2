//! A database with faults.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Failures, Fault, InboxStore, Session, StoreError};

use super::script::{Injected, Script, Seam};

/// A store whose begin, claim, last statement and commit go through a [`Script`], and whose
/// database can be taken away as a whole.
///
/// A call that was not made and an answer that was lost are [`Fault::Unavailable`], at commit
/// [`Fault::Unknown`].
#[derive(Clone, Debug)]
pub struct FaultyStore<S> {
    inner: S,
    script: Script,
    outage: Outage,
}

/// A switch that takes a database away. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Outage(Arc<AtomicBool>);

impl Outage {
    /// From now on no call reaches the database, and connections are lost.
    pub fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// The database is back. Connections from before stay lost.
    pub fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.0.load(Ordering::SeqCst) {
            return Err(StoreError::new(Fault::Unavailable, "injected: the database is away"));
        }
        Ok(())
    }
}

impl<S: InboxStore> FaultyStore<S> {
    /// Wraps a store.
    #[must_use]
    pub fn new(inner: S, script: Script) -> Self {
        Self { inner, script, outage: Outage::default() }
    }

    /// The switch that takes the database away.
    #[must_use]
    pub fn outage(&self) -> Outage {
        self.outage.clone()
    }
}

fn unavailable(injected: Injected) -> StoreError {
    StoreError::new(Fault::Unavailable, injected.to_string()).with_source(injected)
}

fn unknown(injected: Injected) -> StoreError {
    StoreError::new(Fault::Unknown, injected.to_string()).with_source(injected)
}

#[async_trait]
impl<S: InboxStore> InboxStore for FaultyStore<S> {
    type Connection = S::Connection;
    type Session = FaultySession<S::Session>;

    fn product(&self) -> &'static str {
        self.inner.product()
    }

    fn max_sessions(&self) -> usize {
        self.inner.max_sessions()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.check().await
    }

    async fn open(&self) -> Result<Self::Session, StoreError> {
        self.outage.check()?;
        let inner = self.inner.open().await?;
        Ok(FaultySession { inner, script: self.script.clone(), outage: self.outage.clone() })
    }

    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Fault> {
        self.inner.classify(error)
    }
}

/// A session of a [`FaultyStore`].
#[derive(Debug)]
pub struct FaultySession<T> {
    inner: T,
    script: Script,
    outage: Outage,
}

#[async_trait]
impl<T: Session> Session for FaultySession<T> {
    type Connection = T::Connection;

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.outage.check()?;
        self.script.across(Seam::Begin, self.inner.begin(), unavailable).await
    }

    async fn claim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<Vec<bool>, StoreError> {
        self.outage.check()?;
        self.script.across(Seam::Claim, self.inner.claim(consumer, ids), unavailable).await
    }

    fn connection(&mut self) -> &mut T::Connection {
        self.inner.connection()
    }

    async fn savepoint(&mut self) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.savepoint().await
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.release().await
    }

    async fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.rollback_to().await
    }

    async fn unclaim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.unclaim(consumer, ids).await
    }

    async fn prove(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        self.outage.check()?;
        self.script.across(Seam::LastStatement, self.inner.prove(consumer, ids), unavailable).await
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        // A database that goes away before COMMIT is sent leaves that as open as any other loss.
        self.outage.check().map_err(|error| StoreError::new(Fault::Unknown, error.to_string()))?;
        self.script.across(Seam::Commit, self.inner.commit(), unknown).await
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.rollback().await
    }

    async fn record_failure(
        &mut self,
        consumer: &ConsumerName,
        id: &MessageId,
        error: &str,
    ) -> Result<Failures, StoreError> {
        self.outage.check()?;
        self.inner.record_failure(consumer, id, error).await
    }

    async fn record_start(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<u32, StoreError> {
        self.outage.check()?;
        self.inner.record_start(consumer, id).await
    }

    async fn forget_attempts(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<(), StoreError> {
        self.outage.check()?;
        self.inner.forget_attempts(consumer, id).await
    }

    fn discard(self) {
        self.inner.discard();
    }
}
