//! SQLite, with one promise broken.

use std::error::Error;
use std::sync::Arc;

use aftercommit_conformance::inbox::{Books, Effect, Ledger};
use aftercommit_core::{BoxError, ConsumerName, Failure, MessageId};
use aftercommit_inbox::{Failures, Fault, InboxStore, Session, StoreError};
use aftercommit_integration_tests::books::SqliteBooks;
use aftercommit_sql::sqlx::sqlite::SqliteConnection;
use aftercommit_sql::{SqliteInbox, SqliteSession};
use async_trait::async_trait;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    ClaimIsAlwaysOurs,
    ClaimIsNeverOurs,
    /// As PostgreSQL's driver has it without the last statement: COMMIT of a dead transaction is Ok.
    ProofAlwaysHolds,
    CommitDidNotHappen,
    LostCommitSaysRefused,
    UnclaimForgets,
    ForgetForgets,
}

pub(crate) struct LyingBooks {
    pub(crate) lie: Option<Lie>,
}

#[async_trait]
impl Books for LyingBooks {
    type Store = LyingInbox;

    fn product(&self) -> &'static str {
        "sqlite"
    }

    fn one_writer(&self) -> Option<&'static str> {
        SqliteBooks.one_writer()
    }

    async fn open(&self, trial: &str) -> Result<Arc<dyn Ledger<LyingInbox>>, BoxError> {
        Ok(Arc::new(LyingLedger { inner: SqliteBooks.open(trial).await?, lie: self.lie }))
    }
}

struct LyingLedger {
    inner: Arc<dyn Ledger<SqliteInbox>>,
    lie: Option<Lie>,
}

#[async_trait]
impl Ledger<LyingInbox> for LyingLedger {
    async fn store(&self) -> Result<LyingInbox, BoxError> {
        Ok(LyingInbox { inner: self.inner.store().await?, lie: self.lie })
    }

    async fn record(&self, db: &mut SqliteConnection, effect: &Effect) -> Result<(), Failure> {
        self.inner.record(db, effect).await
    }

    async fn stumble(&self, db: &mut SqliteConnection) -> Result<(), Failure> {
        self.inner.stumble(db).await
    }

    async fn raw(&self, db: &mut SqliteConnection, sql: &'static str) -> Result<(), Failure> {
        self.inner.raw(db, sql).await
    }

    async fn effects(&self) -> Result<Vec<Effect>, BoxError> {
        self.inner.effects().await
    }

    async fn handled(&self) -> Result<Vec<(String, String)>, BoxError> {
        self.inner.handled().await
    }

    async fn failures(&self) -> Result<u64, BoxError> {
        self.inner.failures().await
    }

    async fn strike(&self) -> Result<(), BoxError> {
        self.inner.strike().await
    }
}

pub(crate) struct LyingInbox {
    inner: SqliteInbox,
    lie: Option<Lie>,
}

#[async_trait]
impl InboxStore for LyingInbox {
    type Connection = SqliteConnection;
    type Session = LyingSession;

    fn product(&self) -> &'static str {
        self.inner.product()
    }

    fn max_sessions(&self) -> usize {
        self.inner.max_sessions()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn open(&self) -> Result<LyingSession, StoreError> {
        let inner = self.inner.open().await?;
        Ok(LyingSession { inner, lie: self.lie, held: Vec::new(), dead: false })
    }

    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Fault> {
        self.inner.classify(error)
    }
}

pub(crate) struct LyingSession {
    inner: SqliteSession,
    lie: Option<Lie>,
    /// What was really claimed.
    held: Vec<MessageId>,
    dead: bool,
}

impl LyingSession {
    fn lies(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }
}

#[async_trait]
impl Session for LyingSession {
    type Connection = SqliteConnection;

    async fn begin(&mut self) -> Result<(), StoreError> {
        (self.held, self.dead) = (Vec::new(), false);
        self.inner.begin().await
    }

    async fn claim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<Vec<bool>, StoreError> {
        let ours = self.inner.claim(consumer, ids).await?;
        self.held = ids.iter().zip(&ours).filter(|(_, ours)| **ours).map(|(id, _)| (*id).clone()).collect();
        Ok(match self.lie {
            Some(Lie::ClaimIsAlwaysOurs) => vec![true; ids.len()],
            Some(Lie::ClaimIsNeverOurs) => vec![false; ids.len()],
            _ => ours,
        })
    }

    fn connection(&mut self) -> &mut SqliteConnection {
        self.inner.connection()
    }

    async fn savepoint(&mut self) -> Result<(), StoreError> {
        self.inner.savepoint().await
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.inner.release().await
    }

    async fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.inner.rollback_to().await
    }

    async fn unclaim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        if self.lies(Lie::UnclaimForgets) {
            return Ok(());
        }
        self.inner.unclaim(consumer, ids).await
    }

    async fn prove(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        let held: Vec<&MessageId> = self.held.iter().collect();
        // The proof would find these two out.
        let blind = self.lies(Lie::ClaimIsAlwaysOurs) || self.lies(Lie::UnclaimForgets);
        let ids = if blind { held.as_slice() } else { ids };
        let proof = self.inner.prove(consumer, ids).await;
        if self.lies(Lie::ProofAlwaysHolds) {
            self.dead = proof.is_err();
            return Ok(());
        }
        proof
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        if self.dead {
            return Ok(());
        }
        if self.lies(Lie::CommitDidNotHappen) {
            return self.inner.rollback().await;
        }
        self.inner.commit().await?;
        if self.lies(Lie::LostCommitSaysRefused) {
            return Err(StoreError::new(Fault::Refused, "not committed, it says"));
        }
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.inner.rollback().await
    }

    async fn record_failure(
        &mut self,
        consumer: &ConsumerName,
        id: &MessageId,
        error: &str,
    ) -> Result<Failures, StoreError> {
        self.inner.record_failure(consumer, id, error).await
    }

    async fn record_start(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<u32, StoreError> {
        self.inner.record_start(consumer, id).await
    }

    async fn forget_attempts(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<(), StoreError> {
        if self.lies(Lie::ForgetForgets) {
            return Ok(());
        }
        self.inner.forget_attempts(consumer, id).await
    }

    fn discard(self) {
        self.inner.discard();
    }
}
