//! Our own bookkeeping of versions: `sqlx::migrate!` belongs to the application.

use aftercommit_inbox::StoreError;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::fault;
use super::options::SqliteInboxOptions;
use super::statements::BEGIN;
use crate::migration::{Migration, absent, current, missing};

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "inbox",
    sql: include_str!("../../../migrations/sqlite/0001_inbox.sql"),
}];

const VERSIONS: &str = "CREATE TABLE {versions} (version INTEGER PRIMARY KEY CHECK (version > 0), \
    name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))) STRICT";

/// The write lock of one transaction keeps other instances out.
pub(super) async fn run(conn: &mut SqliteConnection, options: &SqliteInboxOptions) -> Result<(), StoreError> {
    let failed = |source| fault::error(fault::of_statement(&source), "migrating", source);
    let tables = options.tables();
    let mut transaction = conn.begin_with(BEGIN).await.map_err(failed)?;
    let found = if let Some(found) = version(&mut transaction, options).await.map_err(failed)? {
        found
    } else {
        let sql = AssertSqlSafe(tables.fill(VERSIONS));
        sqlx::raw_sql(sql).execute(&mut *transaction).await.map_err(failed)?;
        0
    };
    let steps = missing(MIGRATIONS, found)?;
    for step in steps {
        apply(&mut transaction, options, step).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    for step in steps {
        tracing::info!(version = step.version, name = step.name, "migrated the inbox's tables");
    }
    Ok(())
}

async fn apply(
    conn: &mut SqliteConnection,
    options: &SqliteInboxOptions,
    step: &Migration,
) -> Result<(), sqlx::Error> {
    let tables = options.tables();
    sqlx::raw_sql(AssertSqlSafe(tables.fill(step.sql))).execute(&mut *conn).await?;
    sqlx::query(AssertSqlSafe(tables.fill("INSERT INTO {versions} (version, name) VALUES (?1, ?2)")))
        .bind(step.version)
        .bind(step.name)
        .execute(conn)
        .await
        .map(drop)
}

/// Refuses tables that are missing or of another version.
pub(super) async fn check(
    conn: &mut SqliteConnection,
    options: &SqliteInboxOptions,
) -> Result<(), StoreError> {
    let failed = |source| fault::error(fault::of_statement(&source), "checking the tables", source);
    let tables = options.tables();
    let found = version(conn, options).await.map_err(failed)?;
    current(MIGRATIONS, found.ok_or_else(|| absent(&tables.versions))?)?;
    for table in [&tables.messages, &tables.attempts] {
        if !exists(conn, table).await.map_err(failed)? {
            return Err(absent(table));
        }
    }
    Ok(())
}

/// `None` without the bookkeeping table.
async fn version(
    conn: &mut SqliteConnection,
    options: &SqliteInboxOptions,
) -> Result<Option<i32>, sqlx::Error> {
    let tables = options.tables();
    if !exists(conn, &tables.versions).await? {
        return Ok(None);
    }
    let sql = tables.fill("SELECT coalesce(max(version), 0) FROM {versions}");
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(conn).await.map(Some)
}

async fn exists(conn: &mut SqliteConnection, table: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    sqlx::query_scalar(sql).bind(table.trim_matches('"')).fetch_one(conn).await
}
