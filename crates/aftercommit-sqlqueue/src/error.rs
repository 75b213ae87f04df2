//! SQLite's errors in the words of the contracts, by result code.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aftercommit_core::{BrokerError, Destination, PublishError, SettleError};
use sqlx::sqlite::SqliteError;

pub(crate) const PRODUCT: &str = "sqlqueue";

/// What is wrong with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Gone,
    Locked,
    Full,
    ReadOnly,
    CannotOpen,
    Disk,
    Damaged,
    NoTables,
    Newer,
    NoLog,
    Interrupted,
    Other,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "it is gone; put it back, or start anew to begin with an empty one",
            Self::Locked => "another process holds its write lock; end the transaction that is open there",
            Self::Full => "the disk is full; make room",
            Self::ReadOnly => {
                "it, its folder or its disk is read-only; give this user the right to write there"
            }
            Self::CannotOpen => {
                "it cannot be opened; see to its folder and to the right to read and write there"
            }
            Self::Disk => "the disk failed to read or write; see to the disk",
            Self::Damaged => {
                "it is damaged or no SQLite file; end the programs that use it and restore a copy"
            }
            Self::NoTables => "it has no tables of this queue; start anew to make them",
            Self::Newer => "its tables are of a newer version; run a newer program",
            Self::NoLog => "it cannot have a write-ahead log there; use a local disk",
            Self::Interrupted => "the process is ending and the answer was not waited for",
            Self::Other => "SQLite failed",
        })
    }
}

/// An error with the file's name. Cheap to clone: one failed transaction may answer many.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the queue file {}: {trouble}", path.display())]
pub(crate) struct FileError {
    path: PathBuf,
    pub(crate) trouble: Trouble,
    #[source]
    source: Option<Arc<sqlx::Error>>,
}

impl FileError {
    pub(crate) fn new(path: &Path, trouble: Trouble) -> Self {
        Self { path: path.to_owned(), trouble, source: None }
    }

    pub(crate) fn of(path: &Path, source: sqlx::Error) -> Self {
        let trouble = judge(&source);
        Self { path: path.to_owned(), trouble, source: Some(Arc::new(source)) }
    }

    /// For an address beside a product's name.
    pub(crate) fn address(&self) -> String {
        self.path.display().to_string()
    }
}

impl From<FileError> for BrokerError {
    fn from(error: FileError) -> Self {
        let (address, reason) = (error.address(), error.trouble.to_string());
        match error.trouble {
            Trouble::ReadOnly => Self::Denied { product: PRODUCT, address, reason },
            Trouble::Damaged | Trouble::NoTables | Trouble::Newer | Trouble::NoLog => Self::Topology {
                place: format!("the queue file {address}"),
                reason,
                source: Some(Box::new(error)),
            },
            Trouble::Other | Trouble::Interrupted => {
                Self::Backend { product: PRODUCT, action: "use the queue file", source: Box::new(error) }
            }
            _ => Self::Unreachable { product: PRODUCT, address, reason, source: Some(Box::new(error)) },
        }
    }
}

impl From<FileError> for SettleError {
    fn from(error: FileError) -> Self {
        Self::Backend(Box::new(error))
    }
}

/// What is wrong with the file may be over soon and says nothing of the message: it may be sent again.
pub(crate) fn unanswered(destination: Destination, error: FileError) -> PublishError {
    PublishError::Unknown { destination, reason: error.to_string(), source: Some(Box::new(error)) }
}

/// Primary result codes of SQLite: the low byte of an extended one.
fn judge(error: &sqlx::Error) -> Trouble {
    let Some(code) = code(error) else {
        return match error {
            sqlx::Error::Io(_) => Trouble::Disk,
            _ => Trouble::Other,
        };
    };
    match code & 0xff {
        5 | 6 => Trouble::Locked,
        3 | 8 => Trouble::ReadOnly,
        10 => Trouble::Disk,
        11 | 26 => Trouble::Damaged,
        13 => Trouble::Full,
        14 => Trouble::CannotOpen,
        _ => Trouble::Other,
    }
}

fn code(error: &sqlx::Error) -> Option<i32> {
    let found = error.as_database_error()?;
    found.try_downcast_ref::<SqliteError>()?;
    found.code()?.parse().ok()
}
