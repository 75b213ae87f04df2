//! Opening connections, and bringing the tables to this program's version.

use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::{FileError, Trouble};
use crate::table;

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Between two tries of what was locked.
const PAUSE: Duration = Duration::from_millis(20);

fn options(path: &Path, busy: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(busy)
        .journal_mode(SqliteJournalMode::Wal)
        // With less, a power cut takes back what was answered positively.
        .synchronous(SqliteSynchronous::Full)
        .pragma("fullfsync", "1")
        .foreign_keys(true)
        .disable_statement_logging()
}

/// Makes file and tables where they are missing. Any number of processes may do so at once. SQLite does not promise to wait
/// for every lock on the way to a write-ahead log, so what is locked is tried again until the busy timeout is over.
pub(super) async fn prepare(path: &Path, busy: Duration) -> Result<(), FileError> {
    let end = Instant::now() + busy;
    loop {
        match prepare_once(path, busy).await {
            Err(error) if error.trouble == Trouble::Locked && Instant::now() < end => {
                tokio::time::sleep(PAUSE).await;
            }
            result => return result,
        }
    }
}

async fn prepare_once(path: &Path, busy: Duration) -> Result<(), FileError> {
    let failed = |error| FileError::of(path, error);
    let mut conn = options(path, busy).create_if_missing(true).connect().await.map_err(failed)?;
    let result = match has_log(&mut conn).await {
        Ok(true) => table::migrate(&mut conn).await.map_err(failed),
        Ok(false) => Err(FileError::new(path, Trouble::NoLog)),
        Err(error) => Err(failed(error)),
    };
    close(conn).await;
    if result? {
        return Ok(());
    }
    Err(FileError::new(path, Trouble::Newer))
}

/// Opens a file that must be there with its tables.
pub(super) async fn existing(path: &Path, busy: Duration) -> Result<SqliteConnection, FileError> {
    let failed = |error| FileError::of(path, error);
    let mut conn = options(path, busy).connect().await.map_err(failed)?;
    let trouble = match table::version(&mut conn).await {
        Ok(Some(found)) if found == table::VERSION => return Ok(conn),
        Ok(Some(found)) if found > table::VERSION => Ok(Trouble::Newer),
        Ok(_) => Ok(Trouble::NoTables),
        Err(error) => Err(error),
    };
    close(conn).await;
    Err(trouble.map_or_else(failed, |trouble| FileError::new(path, trouble)))
}

/// SQLite keeps another journal, and says so only when it is asked, where it cannot map memory.
async fn has_log(conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(conn).await?;
    Ok(mode == "wal")
}

/// Waits until the connection is closed and its locks are free. What goes wrong then cannot be mended.
pub(super) async fn close(conn: SqliteConnection) {
    let _ = conn.close().await;
}
