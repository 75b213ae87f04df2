//! Failures and starts: one short transaction each, on a session at rest.

use aftercommit_core::dead_letter::{MAX_ERROR, readable};
use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Failures, StoreError};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow, SqliteTransactionManager};
use sqlx::{Row, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use time::OffsetDateTime;

use super::fault;
use super::hooks::Hooks;
use super::session::{SqliteSession, roll_back};
use super::statements::BEGIN;
use crate::phase::Phase;

pub(super) async fn record_failure(
    session: &mut SqliteSession,
    consumer: &ConsumerName,
    id: &MessageId,
    error: &str,
) -> Result<Failures, StoreError> {
    const CALL: &str = "counting a failure";
    let query = sqlx::query(session.shared.sql.record_failure())
        .bind(consumer.as_str())
        .bind(id.as_str())
        .bind(readable(error, MAX_ERROR));
    let row = counted(session, CALL, query).await?;
    let failures = row.ok_or(sqlx::Error::RowNotFound).and_then(|row| {
        Ok(Failures {
            count: row.try_get::<i32, _>(0)?.unsigned_abs(),
            first_at: row.try_get::<OffsetDateTime, _>(1)?,
            last_at: row.try_get::<OffsetDateTime, _>(2)?,
        })
    });
    failures.map_err(|source| fault::error(fault::of_statement(&source), CALL, source))
}

pub(super) async fn record_start(
    session: &mut SqliteSession,
    consumer: &ConsumerName,
    id: &MessageId,
) -> Result<u32, StoreError> {
    const CALL: &str = "counting a start";
    let query = sqlx::query(session.shared.sql.record_start()).bind(consumer.as_str()).bind(id.as_str());
    // No row: the message is handled.
    let Some(row) = counted(session, CALL, query).await? else {
        return Ok(0);
    };
    let starts = row.try_get::<i32, _>(0).map(i32::unsigned_abs);
    starts.map_err(|source| fault::error(fault::of_statement(&source), CALL, source))
}

pub(super) async fn forget(
    session: &mut SqliteSession,
    consumer: &ConsumerName,
    id: &MessageId,
) -> Result<(), StoreError> {
    let query = sqlx::query(session.shared.sql.forget()).bind(consumer.as_str()).bind(id.as_str());
    counted(session, "forgetting attempts", query).await.map(drop)
}

async fn counted(
    session: &mut SqliteSession,
    call: &'static str,
    query: Query<'_, Sqlite, SqliteArguments>,
) -> Result<Option<SqliteRow>, StoreError> {
    session.phase.expect(&[Phase::Rest], call)?;
    session.take_turn().await;
    let hooks = session.hooks.clone();
    let answer = committed(session.conn(), &hooks, query).await;
    hooks.disarm();
    let result = session.leave(call, answer, fault::of_statement, Phase::Rest);
    if session.phase == Phase::Failed {
        // A counter that failed must leave the session usable.
        session.phase = Phase::Calling;
        let answer = roll_back(session.conn()).await;
        session.leave(call, answer, fault::of_statement, Phase::Rest)?;
    }
    result
}

async fn committed(
    conn: &mut SqliteConnection,
    hooks: &Hooks,
    query: Query<'_, Sqlite, SqliteArguments>,
) -> Result<Option<SqliteRow>, sqlx::Error> {
    SqliteTransactionManager::begin(conn, Some(BEGIN.into_sql_str())).await?;
    let row = query.fetch_optional(&mut *conn).await?;
    hooks.arm();
    SqliteTransactionManager::commit(conn).await?;
    Ok(row)
}
