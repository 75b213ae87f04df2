//! Failures and starts: one short transaction each, on a session at rest.

use aftercommit_core::dead_letter::{MAX_ERROR, readable};
use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Failures, StoreError};
use sqlx::postgres::{PgArguments, PgConnection, PgRow, PgTransactionManager, Postgres};
use sqlx::query::Query;
use sqlx::{Row, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use time::OffsetDateTime;

use super::fault;
use super::session::{PgSession, roll_back, within};
use super::statements::Sql;
use crate::phase::Phase;

pub(super) async fn record_failure(
    session: &mut PgSession,
    consumer: &ConsumerName,
    id: &MessageId,
    error: &str,
) -> Result<Failures, StoreError> {
    const CALL: &str = "counting a failure";
    // A NUL in the text would make PostgreSQL refuse the row.
    let text = readable(error, MAX_ERROR);
    let query = sqlx::query(session.shared.sql.record_failure())
        .bind(consumer.as_str())
        .bind(id.as_str())
        .bind(text)
        .persistent(session.shared.options.named_statements);
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
    session: &mut PgSession,
    consumer: &ConsumerName,
    id: &MessageId,
) -> Result<u32, StoreError> {
    const CALL: &str = "counting a start";
    let sql = session.shared.sql.record_start();
    let query = of_message(session, sql, consumer, id);
    // No row: the message is handled.
    let Some(row) = counted(session, CALL, query).await? else {
        return Ok(0);
    };
    let starts = row.try_get::<i32, _>(0).map(i32::unsigned_abs);
    starts.map_err(|source| fault::error(fault::of_statement(&source), CALL, source))
}

pub(super) async fn forget(
    session: &mut PgSession,
    consumer: &ConsumerName,
    id: &MessageId,
) -> Result<(), StoreError> {
    let sql = session.shared.sql.forget();
    let query = of_message(session, sql, consumer, id);
    counted(session, "forgetting attempts", query).await.map(drop)
}

fn of_message<'q>(
    session: &PgSession,
    sql: Sql,
    consumer: &'q ConsumerName,
    id: &'q MessageId,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(sql)
        .bind(consumer.as_str())
        .bind(id.as_str())
        .persistent(session.shared.options.named_statements)
}

async fn counted(
    session: &mut PgSession,
    call: &'static str,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<Option<PgRow>, StoreError> {
    session.phase.expect(&[Phase::Rest], call)?;
    let begin = session.shared.sql.begin_counting();
    let limit = session.enter();
    let answer = within(limit, committed(session.conn(), begin, query)).await;
    let result = session.leave(call, answer, fault::of_statement, Phase::Rest);
    if session.phase == Phase::Failed {
        // A counter that failed must leave the session usable.
        let answer = within(session.enter(), roll_back(session.conn())).await;
        session.leave(call, answer, fault::of_statement, Phase::Rest)?;
    }
    result
}

async fn committed(
    conn: &mut PgConnection,
    begin: Sql,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<Option<PgRow>, sqlx::Error> {
    PgTransactionManager::begin(conn, Some(begin.into_sql_str())).await?;
    let row = query.fetch_optional(&mut *conn).await?;
    PgTransactionManager::commit(conn).await?;
    Ok(row)
}
