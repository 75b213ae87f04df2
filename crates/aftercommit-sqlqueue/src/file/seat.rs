//! Where a connection waits between two uses.

use std::path::Path;

use sqlx::sqlite::SqliteConnection;

use super::{File, open};
use crate::error::{FileError, Trouble};

/// A connection, if there is one, and which file it is open on.
///
/// It is taken out while it is used: a future that is dropped in the middle, or a runtime that ends, takes the connection
/// with it, and nobody finds one inside a foreign transaction.
#[derive(Default)]
pub(super) struct Seat {
    conn: Option<SqliteConnection>,
    identity: Option<Identity>,
}

impl Seat {
    /// The connection, opened anew if there is none or if the path leads to another file by now. A file that was moved or
    /// deleted under an open connection can still be written, and what is written there is lost.
    pub(super) async fn take(&mut self, file: &File) -> Result<SqliteConnection, FileError> {
        let gone = || FileError::new(&file.path, Trouble::Gone);
        let there = identity(&file.path);
        match self.conn.take() {
            Some(conn) if there.is_some() && there == self.identity => return Ok(conn),
            Some(conn) => open::close(conn).await,
            None => {}
        }
        let there = there.ok_or_else(gone)?;
        let conn = open::existing(&file.path, file.busy).await?;
        self.identity = Some(there);
        Ok(conn)
    }

    /// Puts it back, unless the file was exchanged meanwhile: what was done may have been done to the old one.
    pub(super) fn put_back(&mut self, file: &File, conn: SqliteConnection) -> Result<(), FileError> {
        self.conn = Some(conn);
        if identity(&file.path) == self.identity {
            return Ok(());
        }
        Err(FileError::new(&file.path, Trouble::Gone))
    }
}

/// What a path leads to.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Elsewhere an open file can be neither moved nor deleted.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|_| (0, 0))
}
