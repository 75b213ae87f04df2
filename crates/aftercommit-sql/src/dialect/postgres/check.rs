//! Settings that let a COMMIT vanish, and tables that are not ours.

use aftercommit_inbox::{Fault, StoreError};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};

use super::options::PgInboxOptions;
use super::{fault, migrate};

const OLDEST: i32 = 130_000;

/// Everything as this connection sees it: role, database and connection settings included.
const SETTINGS: &str = "SELECT current_setting('server_version_num')::int AS version, \
    pg_is_in_recovery() AS standby, \
    current_setting('transaction_read_only') AS read_only, \
    current_setting('server_encoding') AS encoding, \
    current_setting('fsync') AS fsync, \
    current_setting('full_page_writes') AS full_page_writes, \
    current_setting('synchronous_commit') AS synchronous_commit, \
    current_setting('synchronous_standby_names') <> '' AS has_standbys";

/// In one transaction, so that a pooler keeps it on one server connection.
pub(super) async fn run(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<(), StoreError> {
    const CALL: &str = "checking the settings";
    let failed = |source| fault::error(fault::of_statement(&source), CALL, source);
    let mut conn = conn.begin().await.map_err(failed)?;
    let row = sqlx::query(SETTINGS).persistent(false).fetch_one(&mut *conn).await.map_err(failed)?;
    let settings = Settings::read(&row).map_err(failed)?;
    settings.can_write()?;
    migrate::check(&mut conn, options).await?;
    if let Some(denied) = denied(&mut conn, options).await.map_err(failed)? {
        return Err(StoreError::new(Fault::Schema, denied));
    }
    let unlogged = unlogged(&mut conn, options).await.map_err(failed)?;
    conn.rollback().await.map_err(failed)?;
    let findings: Vec<_> = settings.vanishing().chain(unlogged).collect();
    if findings.is_empty() {
        return Ok(());
    }
    let what = format!("a COMMIT can vanish: {}", findings.join("; "));
    if options.allow_unsafe_commit {
        tracing::warn!("{what}");
        return Ok(());
    }
    Err(StoreError::new(Fault::Unsafe, what))
}

/// Whether the connection is inside a transaction that somebody left open. In a transaction of one
/// simple query both times are the same instant.
pub(super) async fn is_in_transaction(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row = sqlx::raw_sql("SELECT now() <> statement_timestamp()").fetch_one(conn).await?;
    row.try_get(0)
}

struct Settings {
    version: i32,
    standby: bool,
    read_only: String,
    encoding: String,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    has_standbys: bool,
}

impl Settings {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            version: row.try_get("version")?,
            standby: row.try_get("standby")?,
            read_only: row.try_get("read_only")?,
            encoding: row.try_get("encoding")?,
            fsync: row.try_get("fsync")?,
            full_page_writes: row.try_get("full_page_writes")?,
            synchronous_commit: row.try_get("synchronous_commit")?,
            has_standbys: row.try_get("has_standbys")?,
        })
    }

    fn can_write(&self) -> Result<(), StoreError> {
        let (fault, what) = if self.version < OLDEST {
            let what = format!("PostgreSQL {} is too old: 13 is the oldest supported", self.version / 10_000);
            (Fault::Schema, what)
        } else if self.standby {
            let what =
                "the server is a standby in recovery: connect to the primary, or wait for its promotion";
            (Fault::Unavailable, what.to_owned())
        } else if self.read_only != "off" {
            let what = "transactions are read-only here: set default_transaction_read_only = off for the role, \
                the database or the server";
            (Fault::Unavailable, what.to_owned())
        } else if self.encoding != "UTF8" {
            let what = format!(
                "the database's encoding is {}, in which some message ids cannot be written: use a database with UTF8",
                self.encoding
            );
            (Fault::Schema, what)
        } else {
            return Ok(());
        };
        Err(StoreError::new(fault, what))
    }

    fn vanishing(&self) -> impl Iterator<Item = String> {
        let fsync = (self.fsync == "off").then_some(
            "fsync = off: a crash of the machine loses committed rows; set fsync = on in postgresql.conf and restart",
        );
        let pages = (self.full_page_writes == "off").then_some(
            "full_page_writes = off: a crash of the machine can tear pages with committed rows; \
             set full_page_writes = on in postgresql.conf and reload",
        );
        let commit = match (self.synchronous_commit.as_str(), self.has_standbys) {
            ("off", _) => Some(
                "synchronous_commit = off: a crash of the server loses the last committed rows; \
                 ALTER ROLE or ALTER DATABASE … SET synchronous_commit = on, or set it in postgresql.conf",
            ),
            ("local", true) => Some(
                "synchronous_commit = local with synchronous standbys: a failover loses the last committed rows; \
                 ALTER ROLE or ALTER DATABASE … SET synchronous_commit = on, or set it in postgresql.conf",
            ),
            _ => None,
        };
        [fsync, pages, commit].into_iter().flatten().map(str::to_owned)
    }
}

/// A right that the role lacks on our tables.
async fn denied(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<Option<String>, sqlx::Error> {
    let tables = options.tables();
    let sql = "SELECT format('GRANT %s ON %s TO %I', wanted, place, current_user) \
        FROM (VALUES ($1, 'SELECT'), ($1, 'INSERT'), ($1, 'DELETE'), \
        ($2, 'SELECT'), ($2, 'INSERT'), ($2, 'UPDATE'), ($2, 'DELETE')) AS t (place, wanted) \
        WHERE NOT has_table_privilege(place, wanted) LIMIT 1";
    let grant: Option<String> = sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(&tables.messages)
        .bind(&tables.attempts)
        .persistent(false)
        .fetch_optional(conn)
        .await?;
    Ok(grant.map(|grant| format!("the role lacks a right on the inbox's tables: {grant}")))
}

/// Tables that a crash of the server empties.
async fn unlogged(conn: &mut PgConnection, options: &PgInboxOptions) -> Result<Vec<String>, sqlx::Error> {
    let tables = options.tables();
    let sql = "SELECT oid::regclass::text FROM pg_class \
        WHERE oid = ANY (ARRAY[to_regclass($1), to_regclass($2)]) AND relpersistence <> 'p'";
    let found: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(&tables.messages)
        .bind(&tables.attempts)
        .persistent(false)
        .fetch_all(conn)
        .await?;
    Ok(found
        .iter()
        .map(|table| {
            format!("{table} is not logged: a crash of the server empties it; ALTER TABLE {table} SET LOGGED")
        })
        .collect())
}
