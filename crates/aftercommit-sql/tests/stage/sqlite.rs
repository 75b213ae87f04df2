use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aftercommit_conformance::store::{Ability, Act, Attempts, StoreFixture, StoreStage};
use aftercommit_core::BoxError;
use aftercommit_sql::{SqliteInbox, SqliteInboxOptions};
use async_trait::async_trait;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Row};
use tempfile::TempDir;

/// A file per trial, in this folder.
pub(crate) struct Fixture(pub(crate) PathBuf);

#[async_trait]
impl StoreFixture<SqliteInbox> for Fixture {
    async fn stage(&self, _trial: &str) -> Result<Arc<dyn StoreStage<SqliteInbox>>, BoxError> {
        Ok(Arc::new(Stage::new(&self.0).await?))
    }

    fn absent(&self) -> Vec<(Ability, &'static str)> {
        vec![
            (Ability::FailedTransactions, "a failed statement undoes itself and nothing else"),
            (Ability::UnsafeTransactions, "how commits are synced cannot be changed inside a transaction"),
            (Ability::RaisedCodes, "SQL cannot raise any code it likes"),
            (Ability::Kill, "there is no server that could end a connection"),
            (Ability::LostAnswers, "COMMIT is a call of a library, whose answer cannot be lost"),
        ]
    }
}

pub(crate) struct Stage {
    folder: TempDir,
}

const TABLES: &str = "CREATE TABLE parents (id INTEGER PRIMARY KEY); \
    CREATE TABLE effects (value TEXT NOT NULL, parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED); \
    CREATE TABLE trap (value TEXT); \
    CREATE TRIGGER sprung BEFORE INSERT ON trap BEGIN \
    SELECT raise(ABORT, 'database is locked: deadlock detected, connection timed out'); END";

impl Stage {
    pub(crate) async fn new(folder: &Path) -> Result<Self, BoxError> {
        let stage = Self { folder: tempfile::tempdir_in(folder)? };
        let mut conn = safe(&stage.file()).create_if_missing(true).connect().await?;
        sqlx::raw_sql(TABLES).execute(&mut conn).await?;
        conn.close().await?;
        Ok(stage)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("inbox.db")
    }

    pub(crate) async fn look(&self) -> Result<SqliteConnection, BoxError> {
        Ok(safe(&self.file()).connect().await?)
    }

    async fn elsewhere(&self, file: SqliteConnectOptions) -> Result<SqliteInbox, BoxError> {
        let store = store_at(file.create_if_missing(true), 1);
        store.migrate().await?;
        Ok(store)
    }
}

/// As an application would open it.
pub(crate) fn safe(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .busy_timeout(Duration::from_secs(5))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

pub(crate) fn store_at(file: SqliteConnectOptions, connections: u32) -> SqliteInbox {
    let pool = SqlitePoolOptions::new().max_connections(connections).acquire_timeout(Duration::from_secs(1));
    SqliteInbox::with_options(pool.connect_lazy_with(file), SqliteInboxOptions::default())
}

#[async_trait]
impl StoreStage<SqliteInbox> for Stage {
    async fn store(&self, connections: u32) -> Result<SqliteInbox, BoxError> {
        Ok(store_at(safe(&self.file()), connections))
    }

    async fn migrate(&self, store: &SqliteInbox) -> Result<(), BoxError> {
        Ok(store.migrate().await?)
    }

    async fn act(&self, db: &mut SqliteConnection, act: Act<'_>) -> Result<(), BoxError> {
        const INSERT: &str = "INSERT INTO effects (value) VALUES (?1)";
        match act {
            Act::Effect(value) => {
                sqlx::query(INSERT).bind(value).execute(db).await?;
            }
            Act::Nested(value) => {
                let mut nested = db.begin().await?;
                sqlx::query(INSERT).bind(value).execute(&mut *nested).await?;
                nested.commit().await?;
            }
            Act::NestedUndone(value) => {
                let mut nested = db.begin().await?;
                sqlx::query(INSERT).bind(value).execute(&mut *nested).await?;
                nested.rollback().await?;
            }
            Act::DeleteClaim { consumer, id } => {
                let sql = "DELETE FROM inbox_messages WHERE consumer_name = ?1 AND message_id = ?2";
                sqlx::query(sql).bind(consumer).bind(id).execute(db).await?;
            }
            Act::CommitAndBegin => {
                let committed = sqlx::raw_sql("COMMIT").execute(&mut *db).await;
                sqlx::raw_sql("BEGIN").execute(db).await?;
                committed?;
            }
            plain => {
                sqlx::raw_sql(statement(plain)?).execute(db).await?;
            }
        }
        Ok(())
    }

    async fn effects(&self) -> Result<Vec<String>, BoxError> {
        let sql = "SELECT value FROM effects ORDER BY value";
        Ok(sqlx::query_scalar(sql).fetch_all(&mut self.look().await?).await?)
    }

    async fn claims(&self) -> Result<Vec<(String, String)>, BoxError> {
        let sql = "SELECT consumer_name, message_id FROM inbox_messages ORDER BY 1, 2";
        Ok(sqlx::query_as(sql).fetch_all(&mut self.look().await?).await?)
    }

    async fn attempts(&self) -> Result<Vec<Attempts>, BoxError> {
        let sql = "SELECT consumer_name, message_id, failures, starts, last_error FROM inbox_attempts ORDER BY 1, 2";
        let rows = sqlx::query(sql).fetch_all(&mut self.look().await?).await?;
        rows.iter()
            .map(|row| {
                Ok(Attempts {
                    consumer: row.try_get(0)?,
                    id: row.try_get(1)?,
                    failures: row.try_get(2)?,
                    starts: row.try_get(3)?,
                    last_error: row.try_get(4)?,
                })
            })
            .collect()
    }

    /// One at most: the file has one write lock.
    async fn open_transactions(&self) -> Result<usize, BoxError> {
        match write_at_once(&self.file()).await {
            Ok(()) => Ok(0),
            Err(error) if is_busy(&error) => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    async fn unsafe_stores(&self) -> Result<Vec<(&'static str, SqliteInbox)>, BoxError> {
        let file = |name: &str| safe(&self.folder.path().join(name));
        let normal = file("normal.db").synchronous(SqliteSynchronous::Normal);
        let off = file("off.db").synchronous(SqliteSynchronous::Off);
        let memory = file("memory.db").journal_mode(SqliteJournalMode::Memory);
        let delete = file("delete.db").journal_mode(SqliteJournalMode::Delete);
        let nowhere = SqliteConnectOptions::new().filename(":memory:");
        Ok(vec![
            ("synchronous = NORMAL with journal_mode = wal", self.elsewhere(normal).await?),
            ("synchronous = OFF with journal_mode = wal", self.elsewhere(off).await?),
            ("journal_mode = memory", self.elsewhere(memory).await?),
            ("synchronous = FULL with journal_mode = delete", self.elsewhere(delete).await?),
            ("in memory", self.elsewhere(nowhere).await?),
        ])
    }

    async fn pretend_newer(&self) -> Result<(), BoxError> {
        let sql = "INSERT INTO inbox_schema_versions (version, name) VALUES (1000, 'later')";
        sqlx::raw_sql(sql).execute(&mut self.look().await?).await?;
        Ok(())
    }
}

async fn write_at_once(file: &Path) -> Result<(), sqlx::Error> {
    let file = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::ZERO);
    let mut conn = file.connect().await?;
    sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut conn).await?;
    conn.close().await
}

/// `SQLITE_BUSY`, plain or extended.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<i32>().ok()).is_some_and(|code| code & 0xff == 5)
}

fn statement(act: Act<'_>) -> Result<&'static str, BoxError> {
    Ok(match act {
        Act::Fail => "INSERT INTO effects (value) VALUES (NULL)",
        Act::Misleading => "INSERT INTO trap (value) VALUES ('x')",
        Act::Rollback => "ROLLBACK",
        Act::Commit => "COMMIT",
        Act::EndInStatement => "INSERT OR ROLLBACK INTO effects (value) VALUES (NULL)",
        Act::RefuseAtCommit => "INSERT INTO effects (value, parent) VALUES ('orphan', 42)",
        other => return Err(format!("this stage cannot do {other:?}").into()),
    })
}
