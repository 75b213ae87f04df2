use std::collections::HashSet;
use std::sync::Arc;

use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Failures, Fault, Session, StoreError};
use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteTransactionManager};
use sqlx::{Connection, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::OwnedMutexGuard;

use super::hooks::Hooks;
use super::statements::BEGIN;
use super::store::Shared;
use super::writer::Turns;
use super::{counters, fault};
use crate::claimed::answers;
use crate::phase::Phase;

/// One connection to SQLite. See [`Session`].
///
/// Always closed when it ends, since its hooks must not stay on a connection that others use.
#[must_use]
pub struct SqliteSession {
    conn: Option<PoolConnection<Sqlite>>,
    pub(super) shared: Arc<Shared>,
    pub(super) hooks: Hooks,
    turns: Turns,
    turn: Option<OwnedMutexGuard<()>>,
    /// The claims that this transaction holds.
    held: HashSet<(ConsumerName, MessageId)>,
    pub(super) phase: Phase,
}

/// sqlx's depth while we are in our transaction, and in our savepoint.
const IN_TRANSACTION: usize = 1;
const IN_SAVEPOINT: usize = 2;

impl SqliteSession {
    pub(super) fn new(conn: PoolConnection<Sqlite>, shared: Arc<Shared>, hooks: Hooks, turns: Turns) -> Self {
        Self { conn: Some(conn), shared, hooks, turns, turn: None, held: HashSet::new(), phase: Phase::Rest }
    }

    #[expect(clippy::expect_used, reason = "taken only by drop and discard, which end the session")]
    pub(super) fn conn(&mut self) -> &mut SqliteConnection {
        self.conn.as_mut().expect("a session has its connection until it ends")
    }

    /// Waits for the other writers of this process.
    pub(super) async fn take_turn(&mut self) {
        if self.turn.is_none() {
            self.turn = Some(Arc::clone(&self.turns).lock_owned().await);
        }
        // From here on a dropped future leaves the connection in doubt.
        self.phase = Phase::Calling;
        self.hooks.reset();
    }

    fn depth(&mut self) -> usize {
        SqliteTransactionManager::get_transaction_depth(self.conn())
    }

    /// Notes how a call ended.
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
                if then == Phase::Rest {
                    self.turn = None;
                }
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

    fn at_top(&mut self, call: &'static str) -> Result<(), StoreError> {
        if self.depth() == IN_TRANSACTION {
            return Ok(());
        }
        let what = format!("{call}: a handler left a nested transaction open, or ended ours");
        Err(self.broken(Phase::Failed, what))
    }

    fn holds(&self, consumer: &ConsumerName, ids: &[&MessageId]) -> bool {
        ids.iter().all(|id| self.held.contains(&(consumer.clone(), (*id).clone())))
    }

    /// Refuses to go on in a transaction that is over.
    fn alive(&mut self) -> Result<(), StoreError> {
        if self.hooks.has_rolled_back() {
            return Err(self.broken(Phase::Dead, "a handler ended the transaction, or an error in it did"));
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(conn) = self.conn.take() else {
            return;
        };
        let conn = conn.detach();
        let turn = self.turn.take();
        // The connection's own thread still has to roll back: the next writer of this process waits
        // for that here rather than for the file's lock.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = conn.close().await;
                drop(turn);
            });
        }
    }
}

#[async_trait]
impl Session for SqliteSession {
    type Connection = SqliteConnection;

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Rest], "begin")?;
        self.take_turn().await;
        self.held.clear();
        let answer = SqliteTransactionManager::begin(self.conn(), Some(BEGIN.into_sql_str())).await;
        self.leave("begin", answer, fault::of_statement, Phase::Open)
    }

    async fn claim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<Vec<bool>, StoreError> {
        self.phase.expect(&[Phase::Open], "claim")?;
        self.at_top("claim")?;
        let query = sqlx::query_scalar(self.shared.sql.claim()).bind(consumer.as_str()).bind(json(ids));
        self.phase = Phase::Calling;
        let answer = query.fetch_all(self.conn()).await;
        let inserted = self.leave("claim", answer, fault::of_statement, Phase::Open)?;
        let claimed = answers(ids, inserted);
        let ours = ids.iter().zip(&claimed).filter(|(_, claimed)| **claimed);
        self.held.extend(ours.map(|(id, _)| (consumer.clone(), (*id).clone())));
        Ok(claimed)
    }

    fn connection(&mut self) -> &mut SqliteConnection {
        if self.phase == Phase::Proved {
            self.phase = Phase::Open;
        }
        self.conn()
    }

    async fn savepoint(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open], "savepoint")?;
        self.alive()?;
        self.at_top("savepoint")?;
        self.phase = Phase::Calling;
        let answer = SqliteTransactionManager::begin(self.conn(), None).await;
        self.leave("savepoint", answer, fault::of_statement, Phase::Open)
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open], "release")?;
        self.alive()?;
        if self.depth() != IN_SAVEPOINT {
            return Err(self.broken(Phase::Failed, "release: the handler left a nested transaction open"));
        }
        self.phase = Phase::Calling;
        let answer = SqliteTransactionManager::commit(self.conn()).await;
        self.leave("release", answer, fault::of_statement, Phase::Open)
    }

    async fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open, Phase::Failed], "rollback to the savepoint")?;
        self.alive()?;
        if self.depth() < IN_SAVEPOINT {
            return Err(self.broken(Phase::Failed, "rollback to the savepoint: there is none"));
        }
        self.phase = Phase::Calling;
        let answer = roll_back_to_savepoint(self.conn()).await;
        self.leave("rollback to the savepoint", answer, fault::of_statement, Phase::Open)
    }

    async fn unclaim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open], "unclaim")?;
        self.alive()?;
        // What was handled earlier must not be forgotten.
        if !self.holds(consumer, ids) {
            return Err(
                self.broken(Phase::Failed, "unclaim: not all of these were claimed in this transaction")
            );
        }
        let query = sqlx::query(self.shared.sql.unclaim()).bind(consumer.as_str()).bind(json(ids));
        self.phase = Phase::Calling;
        let answer = query.execute(self.conn()).await;
        self.leave("unclaim", answer, fault::of_statement, Phase::Open)?;
        for id in ids {
            self.held.remove(&(consumer.clone(), (*id).clone()));
        }
        Ok(())
    }

    async fn prove(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open, Phase::Proved], "the last statement")?;
        self.at_top("the last statement")?;
        let query =
            sqlx::query_scalar::<_, i64>(self.shared.sql.prove()).bind(consumer.as_str()).bind(json(ids));
        self.phase = Phase::Calling;
        let answer = query.fetch_one(self.conn()).await;
        let held = self.leave("the last statement", answer, fault::of_statement, Phase::Failed)?;
        // Asked after the statement: by then everything that was queued on the connection has run.
        self.alive()?;
        let same = self.held.len() == ids.len() && self.holds(consumer, ids);
        if !same || usize::try_from(held) != Ok(ids.len()) {
            return Err(self.broken(Phase::Failed, "the transaction does not hold exactly what it claimed"));
        }
        self.phase = Phase::Proved;
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Proved], "commit")?;
        self.phase = Phase::Calling;
        self.hooks.arm();
        let answer = SqliteTransactionManager::commit(self.conn()).await;
        self.hooks.disarm();
        self.leave("commit", answer, fault::of_commit, Phase::Rest)
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.phase.expect(&[Phase::Open, Phase::Proved, Phase::Failed], "rollback")?;
        self.alive()?;
        self.phase = Phase::Calling;
        let answer = roll_back(self.conn()).await;
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
        self.close();
    }
}

async fn roll_back_to_savepoint(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    while SqliteTransactionManager::get_transaction_depth(conn) > IN_TRANSACTION {
        SqliteTransactionManager::rollback(conn).await?;
    }
    // sqlx leaves the savepoint itself defined; later ones would nest in it.
    sqlx::raw_sql("RELEASE SAVEPOINT _sqlx_savepoint_1").execute(conn).await.map(drop)
}

/// To depth 0, whatever nested transactions were left open.
pub(super) async fn roll_back(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    while SqliteTransactionManager::get_transaction_depth(conn) > 0 {
        SqliteTransactionManager::rollback(conn).await?;
    }
    Ok(())
}

fn json(ids: &[&MessageId]) -> String {
    let ids: Vec<_> = ids.iter().map(|id| id.as_str()).collect();
    serde_json::Value::from(ids).to_string()
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for SqliteSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteSession").field("phase", &self.phase).finish_non_exhaustive()
    }
}
