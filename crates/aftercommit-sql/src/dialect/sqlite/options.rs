use std::path::Path;
use std::time::Duration;

use aftercommit_core::ConfigError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::names::{Name, Tables};

/// How [`SqliteInbox`](crate::SqliteInbox) behaves.
///
/// SQLite has no limits for statements or idle transactions: a frozen process that holds the write
/// lock blocks every other process until it is ended.
#[derive(Clone, Debug)]
pub struct SqliteInboxOptions {
    prefix: Name,
    busy_timeout: Duration,
    pub(super) allow_unsafe_commit: bool,
}

impl Default for SqliteInboxOptions {
    /// No prefix; waits 5 seconds for another process's write.
    fn default() -> Self {
        Self { prefix: Name::default(), busy_timeout: Duration::from_secs(5), allow_unsafe_commit: false }
    }
}

impl SqliteInboxOptions {
    /// What the tables' names start with.
    ///
    /// # Errors
    /// [`ConfigError`] when it is not a plain name.
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Result<Self, ConfigError> {
        self.prefix = Name::prefix(prefix)?;
        Ok(self)
    }

    /// How long a transaction waits for the write of another process before it is run again. Writers
    /// of this process wait for each other without it. Does not change a pool of your own.
    #[must_use]
    pub const fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Runs where a COMMIT can vanish: **messages can be lost** then, because they are confirmed to
    /// the broker after a commit that a power cut undoes. What would have been refused is logged as
    /// a warning.
    #[must_use]
    pub const fn allow_unsafe_commit(mut self, allow: bool) -> Self {
        self.allow_unsafe_commit = allow;
        self
    }

    pub(super) fn tables(&self) -> Tables {
        Tables::new(None, &self.prefix)
    }

    /// A write-ahead log that is synced at every COMMIT; on Apple's systems past the drive's cache.
    pub(super) fn connect(&self, path: &Path) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(self.busy_timeout)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "1")
    }
}
