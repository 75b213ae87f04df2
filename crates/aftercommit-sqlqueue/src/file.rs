//! One queue file as this process has it: one connection that writes, one that reads.

mod open;
mod seat;
mod write;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use tokio::sync::watch;

use crate::config::Config;
use crate::error::FileError;
use seat::Seat;

pub(crate) use open::BoxFuture;
pub(crate) use write::Write;

/// Shared by all brokers of this process on one file: SQLite has one write lock per file, and who waits for it in a queue
/// of ours can share a transaction with the others that wait.
pub(crate) struct File {
    path: PathBuf,
    busy: Duration,
    waiting: Mutex<VecDeque<Box<dyn write::Job>>>,
    writer: tokio::sync::Mutex<Seat>,
    reader: tokio::sync::Mutex<Seat>,
    /// Raised whenever this process may have made a message visible.
    changes: watch::Sender<u64>,
}

static FILES: LazyLock<Mutex<HashMap<PathBuf, Weak<File>>>> = LazyLock::new(Default::default);

impl File {
    /// Opens the file, and makes it and its tables where they are missing.
    pub(crate) async fn open(config: &Config) -> Result<Arc<Self>, FileError> {
        open::prepare(&config.path, config.busy_timeout).await?;
        let path = config.path.canonicalize();
        let path = path.map_err(|_| FileError::new(&config.path, crate::error::Trouble::Gone))?;
        Ok(Self::shared(path, config.busy_timeout))
    }

    fn shared(path: PathBuf, busy: Duration) -> Arc<Self> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&path).and_then(Weak::upgrade) {
            return file;
        }
        files.retain(|_, file| file.strong_count() > 0);
        let file = Arc::new(Self {
            path: path.clone(),
            busy,
            waiting: Mutex::default(),
            writer: tokio::sync::Mutex::default(),
            reader: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
        });
        files.insert(path, Arc::downgrade(&file));
        file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells of each change of this process that may have made a message visible.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Reads. A dropped future costs the connection, which is opened again.
    pub(crate) async fn read<T: Send>(
        &self,
        query: impl for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send,
    ) -> Result<T, FileError> {
        let mut seat = self.reader.lock().await;
        let mut conn = seat.take(self).await?;
        match query(&mut conn).await {
            Ok(found) => {
                seat.put_back(self, conn)?;
                Ok(found)
            }
            Err(error) => {
                open::close(conn).await;
                Err(FileError::of(&self.path, error))
            }
        }
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("path", &self.path).finish_non_exhaustive()
    }
}
