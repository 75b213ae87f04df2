//! Our own bookkeeping of versions, for a file that may have other tables too.

use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

/// Steps are never changed once released, only followed by others.
const STEPS: &[(&str, &str)] = &[("queue", include_str!("../../migrations/sqlite/0001_queue.sql"))];

/// The version that this program needs.
pub(crate) const VERSION: i64 = 1;

const VERSIONS: &str = "CREATE TABLE aftercommit_queue_versions (version INTEGER PRIMARY KEY, name TEXT NOT NULL, \
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))) STRICT";

/// The version of the tables, `None` where there are none.
pub(crate) async fn version(conn: &mut SqliteConnection) -> Result<Option<i64>, sqlx::Error> {
    const THERE: &str =
        "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = 'aftercommit_queue_versions'";
    let there: bool = sqlx::query_scalar(THERE).fetch_one(&mut *conn).await?;
    if !there {
        return Ok(None);
    }
    let row = sqlx::query("SELECT coalesce(max(version), 0) FROM aftercommit_queue_versions")
        .fetch_one(conn)
        .await?;
    row.try_get(0).map(Some)
}

/// Makes what is missing, in one transaction whose write lock keeps other processes out. `false`: the tables are newer than
/// this program.
pub(crate) async fn migrate(conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if version(conn).await? == Some(VERSION) {
        return Ok(true);
    }
    // On an error the caller closes the connection, which rolls back.
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *conn).await?;
    let found = version(conn).await?;
    if found.is_none() {
        sqlx::raw_sql(VERSIONS).execute(&mut *conn).await?;
    }
    let found = found.unwrap_or_default();
    let missing = STEPS.iter().zip(1_i64..).filter(|(_, version)| *version > found);
    for ((name, sql), version) in missing {
        sqlx::raw_sql(*sql).execute(&mut *conn).await?;
        let note = "INSERT INTO aftercommit_queue_versions (version, name) VALUES (?1, ?2)";
        sqlx::query(note).bind(version).bind(*name).execute(&mut *conn).await?;
        tracing::info!(version, name, "migrated the queue's tables");
    }
    sqlx::raw_sql("COMMIT").execute(conn).await?;
    Ok(found <= VERSION)
}
