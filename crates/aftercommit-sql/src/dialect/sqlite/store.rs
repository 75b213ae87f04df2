use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use aftercommit_inbox::{Fault, InboxStore, StoreError};
use async_trait::async_trait;
use sqlx::Row;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool, SqlitePoolOptions};

use super::hooks::Hooks;
use super::options::SqliteInboxOptions;
use super::session::SqliteSession;
use super::statements::Statements;
use super::writer::{Turns, turns};
use super::{check, fault, migrate};
use crate::fault::along;

/// An inbox in an SQLite file. Cheap to clone.
///
/// All stores of one process on one file share one writer: a transaction waits until the one before
/// it has ended.
#[derive(Clone)]
pub struct SqliteInbox(Arc<Shared>);

pub(super) struct Shared {
    pool: SqlitePool,
    pub(super) options: SqliteInboxOptions,
    pub(super) sql: Statements,
    turns: OnceLock<Turns>,
}

impl SqliteInbox {
    /// Opens a file, and makes it if there is none: write-ahead log, synced at every commit.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when it cannot be opened.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future leaves no connection; the file may have been made.
    pub async fn open(
        path: impl AsRef<Path> + Send,
        options: SqliteInboxOptions,
    ) -> Result<Self, StoreError> {
        let file = options.connect(path.as_ref());
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(file).await;
        let pool = pool.map_err(|source| fault::error(Fault::Unavailable, "opening the database", source))?;
        Ok(Self::with_options(pool, options))
    }

    /// An inbox on your own pool. Set `journal_mode(Wal)`, `synchronous(Full)` and a busy timeout on
    /// it; [`check`](InboxStore::check) refuses settings under which a COMMIT can vanish.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        Self::with_options(pool, SqliteInboxOptions::default())
    }

    /// An inbox on your own pool.
    #[must_use]
    pub fn with_options(pool: SqlitePool, options: SqliteInboxOptions) -> Self {
        let sql = Statements::new(&options);
        Self(Arc::new(Shared { pool, options, sql, turns: OnceLock::new() }))
    }

    /// Makes or updates the inbox's tables. Any number of instances may call it at once; a call that
    /// finds nothing to do changes nothing. The application's own migrations are not touched.
    ///
    /// # Errors
    /// [`Fault::Schema`] when the tables are newer than this program, [`Fault::Unavailable`] and
    /// [`Fault::Conflict`] when it may work later. Nothing is left half done.
    ///
    /// # Cancel safety
    /// A dropped future has done all or nothing.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        let turns = self.turns(&mut conn).await?;
        let _turn = turns.lock().await;
        let result = migrate::run(&mut conn, &self.0.options).await;
        if result.is_err() {
            // Perhaps inside a transaction.
            let _ = conn.close().await;
        }
        result
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &SqlitePool {
        &self.0.pool
    }

    async fn acquire(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.0
            .pool
            .acquire()
            .await
            .map_err(|source| fault::error(Fault::Unavailable, "no connection to SQLite", source))
    }

    async fn turns(&self, conn: &mut SqliteConnection) -> Result<Turns, StoreError> {
        if let Some(known) = self.0.turns.get() {
            return Ok(Arc::clone(known));
        }
        let file = file(conn)
            .await
            .map_err(|source| fault::error(Fault::Unavailable, "asking for the database's file", source))?;
        let found = file.map_or_else(Turns::default, |file| turns(&file));
        Ok(Arc::clone(self.0.turns.get_or_init(|| found)))
    }
}

/// Where the database is, `None` for one in memory.
pub(super) async fn file(conn: &mut SqliteConnection) -> Result<Option<PathBuf>, sqlx::Error> {
    let row =
        sqlx::query("SELECT file FROM pragma_database_list WHERE name = 'main'").fetch_one(conn).await?;
    let file: Option<String> = row.try_get(0)?;
    Ok(file.filter(|file| !file.is_empty()).map(PathBuf::from))
}

#[async_trait]
impl InboxStore for SqliteInbox {
    type Connection = SqliteConnection;
    type Session = SqliteSession;

    fn product(&self) -> &'static str {
        "sqlite"
    }

    fn max_sessions(&self) -> usize {
        1
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        let turns = self.turns(&mut conn).await?;
        check::run(&mut conn, &turns, &self.0.options).await
    }

    async fn open(&self) -> Result<SqliteSession, StoreError> {
        let mut conn = self.acquire().await?;
        let turns = self.turns(&mut conn).await?;
        let hooks = Hooks::install(&mut conn)
            .await
            .map_err(|source| fault::error(Fault::Unavailable, "taking a connection", source))?;
        Ok(SqliteSession::new(conn, Arc::clone(&self.0), hooks, turns))
    }

    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Fault> {
        along(error, fault::of_handler)
    }
}

impl std::fmt::Debug for SqliteInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteInbox").field("options", &self.0.options).finish_non_exhaustive()
    }
}
