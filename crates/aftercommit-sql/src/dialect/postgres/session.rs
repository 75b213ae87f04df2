use std::io;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Failures, Fault, Session, StoreError};
use async_trait::async_trait;
use sqlx::SqlSafeStr;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgTransactionManager, Postgres};
use sqlx_core::transaction::TransactionManager;

use super::store::Shared;
use super::{counters, fault};
use crate::claimed::answers;
use crate::phase::Phase;

/// One connection to PostgreSQL. See [`Session`].
///
/// Dropped at rest it goes back to its pool; dropped at any other moment it is closed.
#[must_use]
pub struct PgSession {
    conn: Option<PoolConnection<Postgres>>,
    pub(super) shared: Arc<Shared>,
    pub(super) phase: Phase,
    /// How many claims this transaction holds.
    held: usize,
    watch: bool,
}

/// sqlx's depth while we are in our transaction, and in our savepoint.
const IN_TRANSACTION: usize = 1;
const IN_SAVEPOINT: usize = 2;

impl PgSession {
    pub(super) fn new(conn: PoolConnection<Postgres>, shared: Arc<Shared>) -> Self {
        let watch = conn.server_version_num().is_some_and(|version| version >= 140_000);
        Self { conn: Some(conn), shared, phase: Phase::Rest, held: 0, watch }
    }

    #[expect(clippy::expect_used, reason = "taken only by drop and discard, which end the session")]
    pub(super) fn conn(&mut self) -> &mut PgConnection {
        self.conn.as_mut().expect("a session has its connection until it ends")
    }

    fn depth(&mut self) -> usize {
        PgTransactionManager::get_transaction_depth(self.conn())
    }

    /// Notes that a call is under way, so that a dropped future closes the connection. Answers how
    /// long it may take.
    pub(super) fn enter(&mut self) -> Duration {
        self.phase = Phase::Calling;
        self.shared.options.answer_timeout()
    }

    /// Notes how the call ended.
    pub(super) fn leave<T>(
        &mut self,
        call: &'static str,
        answer: Result<T, sqlx::Error>,
        classify: fn(&sqlx::Error) -> Fault,
        then: Phase,
    ) -> Result<T, StoreError> {
        match answer {
            Ok(value) => {
                self.phase = then;
                Ok(value)
            }
            Err(source) => {
                let error = fault::error(classify(&source), call, source);
                self.phase = Phase::after(&error);
                Err(error)
            }
        }
    }

    fn broken(&mut self, phase: Phase, what: impl Into<String>) -> StoreError {
        self.phase = phase;
        StoreError::new(Fault::Aborted, what)
    }

    /// Claims inside a savepoint would carry its id, and one that is left open may still be undone.
    fn at_top(&mut self, call: &'static str) -> Result<(), StoreError> {
        if self.depth() == IN_TRANSACTION {
            return Ok(());
        }
        let what = format!("{call}: a handler left a nested transaction open, or ended ours");
        Err(self.broken(Phase::Failed, what))
    }

    /// The COMMIT could vanish. A handler's SET ends with its transaction or session and is its message's fault; a
    /// default that somebody changed while we run is nobody's, and holds for every message.
    async fn vanishing(&mut self) -> StoreError {
        let limit = self.enter();
        let sql = "SELECT reset_val = setting FROM pg_settings WHERE name = 'synchronous_commit'";
        let answer = within(limit, sqlx::query_scalar(sql).persistent(false).fetch_one(self.conn())).await;
        match self.leave("looking at synchronous_commit", answer, fault::of_statement, Phase::Failed) {
            Ok(true) => StoreError::new(
                Fault::Unsafe,
                "a COMMIT can vanish: synchronous_commit was lowered for this server, database or role: \
                 set it to on again, and reload",
            ),
            Ok(false) => StoreError::new(
                Fault::Aborted,
                "a handler lowered synchronous_commit: the COMMIT could vanish",
            ),
            Err(error) => error,
        }
    }

    fn detach(&mut self) {
        if let Some(conn) = self.conn.take() {
            // Closes the socket at once and without a task; the server rolls back.
            drop(conn.detach());
        }
    }
}

#[async_trait]
impl Session for PgSession {
    type Connection = PgConnection;

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Rest], "begin")?;
        self.held = 0;
        let sql = self.shared.sql.begin(self.watch).into_sql_str();
        let limit = self.enter();
        let answer = within(limit, PgTransactionManager::begin(self.conn(), Some(sql))).await;
        self.leave("begin", answer, fault::of_statement, Phase::Open)
    }

    async fn claim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<Vec<bool>, StoreError> {
        self.phase.expect(&[Phase::Open], "claim")?;
        self.at_top("claim")?;
        let query = sqlx::query_scalar(self.shared.sql.claim())
            .bind(consumer.as_str())
            .bind(texts(ids))
            .persistent(self.shared.options.named_statements);
        let limit = self.enter();
        let answer = within(limit, query.fetch_all(self.conn())).await;
        let inserted = self.leave("claim", answer, fault::of_statement, Phase::Open)?;
        self.held += inserted.len();
        Ok(answers(ids, inserted))
    }

    fn connection(&mut self) -> &mut PgConnection {
        if self.phase == Phase::Proved {
            self.phase = Phase::Open;
        }
        self.conn()
    }

    async fn savepoint(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open], "savepoint")?;
        self.at_top("savepoint")?;
        let limit = self.enter();
        let answer = within(limit, PgTransactionManager::begin(self.conn(), None)).await;
        self.leave("savepoint", answer, fault::of_statement, Phase::Open)
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open], "release")?;
        if self.depth() != IN_SAVEPOINT {
            return Err(self.broken(Phase::Failed, "release: the handler left a nested transaction open"));
        }
        let limit = self.enter();
        let answer = within(limit, PgTransactionManager::commit(self.conn())).await;
        self.leave("release", answer, fault::of_statement, Phase::Open)
    }

    async fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open, Phase::Failed], "rollback to the savepoint")?;
        if self.depth() < IN_SAVEPOINT {
            return Err(self.broken(Phase::Failed, "rollback to the savepoint: there is none"));
        }
        let limit = self.enter();
        let answer = within(limit, roll_back_to_savepoint(self.conn())).await;
        self.leave("rollback to the savepoint", answer, fault::of_statement, Phase::Open)
    }

    async fn unclaim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open], "unclaim")?;
        let query = sqlx::query(self.shared.sql.unclaim())
            .bind(consumer.as_str())
            .bind(texts(ids))
            .persistent(self.shared.options.named_statements);
        let limit = self.enter();
        let answer = within(limit, query.execute(self.conn())).await;
        let deleted = self.leave("unclaim", answer, fault::of_statement, Phase::Open)?.rows_affected();
        if usize::try_from(deleted) != Ok(ids.len()) {
            return Err(
                self.broken(Phase::Failed, "unclaim: not all of these were claimed in this transaction")
            );
        }
        self.held = self.held.saturating_sub(ids.len());
        Ok(())
    }

    async fn prove(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open, Phase::Proved], "the last statement")?;
        self.at_top("the last statement")?;
        let query = sqlx::query_as::<_, (bool, i64, bool)>(self.shared.sql.prove())
            .bind(consumer.as_str())
            .bind(texts(ids))
            .persistent(self.shared.options.named_statements);
        let limit = self.enter();
        let answer = within(limit, query.fetch_one(self.conn())).await;
        let (begun, missing, vanishing) =
            self.leave("the last statement", answer, fault::of_proof, Phase::Failed)?;
        if !begun {
            return Err(self.broken(Phase::Dead, "a handler ended the transaction that made the claims"));
        }
        if missing != 0 || self.held != ids.len() {
            return Err(self.broken(Phase::Failed, "the transaction does not hold exactly what it claimed"));
        }
        if vanishing && !self.shared.options.allow_unsafe_commit {
            return Err(self.vanishing().await);
        }
        self.phase = Phase::Proved;
        Ok(())
    }

    // sqlx does not hand out the command tag, by which PostgreSQL says that it answered COMMIT with
    // ROLLBACK. It does so only for a transaction that failed before COMMIT, and the last statement
    // has just succeeded in this one; what fails inside COMMIT itself is answered with an error.
    async fn commit(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Proved], "commit")?;
        let limit = self.enter();
        let answer = within(limit, PgTransactionManager::commit(self.conn())).await;
        self.leave("commit", answer, fault::of_commit, Phase::Rest)
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open, Phase::Proved, Phase::Failed], "rollback")?;
        let limit = self.enter();
        let answer = within(limit, roll_back(self.conn())).await;
        self.leave("rollback", answer, fault::of_statement, Phase::Rest)
    }

    async fn record_failure(
        &mut self,
        consumer: &ConsumerName,
        id: &MessageId,
        error: &str,
    ) -> Result<Failures, StoreError> {
        counters::record_failure(self, consumer, id, error).await
    }

    async fn record_start(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<u32, StoreError> {
        counters::record_start(self, consumer, id).await
    }

    async fn forget_attempts(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<(), StoreError> {
        counters::forget(self, consumer, id).await
    }

    fn discard(mut self) {
        self.detach();
    }
}

/// A call that is not answered in time ends like a lost connection.
pub(super) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    tokio::time::timeout(limit, call)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
}

async fn roll_back_to_savepoint(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    while PgTransactionManager::get_transaction_depth(conn) > IN_TRANSACTION {
        PgTransactionManager::rollback(conn).await?;
    }
    // sqlx leaves the savepoint itself defined; later ones would nest in it.
    sqlx::raw_sql("RELEASE SAVEPOINT _sqlx_savepoint_1").execute(conn).await.map(drop)
}

/// To depth 0, whatever nested transactions were left open.
pub(super) async fn roll_back(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    if PgTransactionManager::get_transaction_depth(conn) == 0 {
        // A handler used sqlx to end our transaction and may have begun another one.
        return sqlx::raw_sql("ROLLBACK").execute(conn).await.map(drop);
    }
    while PgTransactionManager::get_transaction_depth(conn) > 0 {
        PgTransactionManager::rollback(conn).await?;
    }
    Ok(())
}

fn texts<'a>(ids: &[&'a MessageId]) -> Vec<&'a str> {
    ids.iter().map(|id| id.as_str()).collect()
}

impl Drop for PgSession {
    fn drop(&mut self) {
        // sqlx spawns a task to give a connection back, and panics where there is no runtime.
        if self.phase != Phase::Rest || tokio::runtime::Handle::try_current().is_err() {
            self.detach();
        }
    }
}

impl std::fmt::Debug for PgSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgSession").field("phase", &self.phase).finish_non_exhaustive()
    }
}
