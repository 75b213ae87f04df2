//! Our own bookkeeping of versions: `sqlx::migrate!` belongs to the application.

use aftercommit_inbox::{Fault, StoreError};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};

use super::fault;
use super::options::PgInboxOptions;
use crate::migration::{Migration, absent, current, missing};

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "inbox",
    sql: include_str!("../../../migrations/postgres/0001_inbox.sql"),
}];

/// One transaction with a lock that ends with it, so that a pooler in transaction mode and a
/// process that dies in the middle do no harm.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '60s'; \
    SET LOCAL statement_timeout = '10min'; SET LOCAL idle_in_transaction_session_timeout = '60s'";

const VERSIONS: &str = "CREATE TABLE {versions} (version integer PRIMARY KEY CHECK (version > 0), \
    name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";

pub(super) async fn run(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<(), StoreError> {
    const CALL: &str = "migrating";
    let failed = |source| match fault::of_statement(&source) {
        // "Run migrate()" is no help here.
        Fault::Schema => StoreError::new(Fault::Schema, "the inbox's tables were changed by somebody else")
            .with_source(source),
        fault => fault::error(fault, CALL, source),
    };
    let mut transaction = conn.begin_with(BEGIN).await.map_err(failed)?;
    let found = locked(&mut transaction, options).await.map_err(failed)?;
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

/// Takes the lock, makes schema and bookkeeping where they are missing, and answers the version.
async fn locked(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<i32, sqlx::Error> {
    let tables = options.tables();
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('aftercommit ' || $1, 0))")
        .bind(&tables.versions)
        .persistent(false)
        .execute(&mut *conn)
        .await?;
    // Asked first: CREATE … IF NOT EXISTS needs the right to create even when there is nothing to do.
    let schema: Option<i32> = sqlx::query_scalar("SELECT 1 FROM pg_namespace WHERE nspname = $1")
        .bind(options.schema_name())
        .persistent(false)
        .fetch_optional(&mut *conn)
        .await?;
    if schema.is_none() {
        let sql = format!("CREATE SCHEMA \"{}\"", options.schema_name());
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *conn).await?;
    }
    if let Some(version) = version(conn, options).await? {
        return Ok(version);
    }
    sqlx::raw_sql(AssertSqlSafe(tables.fill(VERSIONS))).execute(conn).await?;
    Ok(0)
}

async fn apply(
    conn: &mut PgConnection,
    options: &PgInboxOptions,
    step: &Migration,
) -> Result<(), sqlx::Error> {
    let tables = options.tables();
    sqlx::raw_sql(AssertSqlSafe(tables.fill(step.sql))).execute(&mut *conn).await?;
    sqlx::query(AssertSqlSafe(tables.fill("INSERT INTO {versions} (version, name) VALUES ($1, $2)")))
        .bind(step.version)
        .bind(step.name)
        .persistent(false)
        .execute(conn)
        .await
        .map(drop)
}

/// Refuses tables that are missing or of another version.
pub(super) async fn check(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<(), StoreError> {
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
async fn version(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<Option<i32>, sqlx::Error> {
    let tables = options.tables();
    if !exists(conn, &tables.versions).await? {
        return Ok(None);
    }
    let sql = tables.fill("SELECT coalesce(max(version), 0) FROM {versions}");
    sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch_one(conn).await?.try_get(0).map(Some)
}

async fn exists(conn: &mut PgConnection, table: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    sqlx::query_scalar(sql).bind(table).persistent(false).fetch_one(conn).await
}
