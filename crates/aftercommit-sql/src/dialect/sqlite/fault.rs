//! What SQLite's errors mean, by result code.

use aftercommit_inbox::{Fault, StoreError};
use sqlx::sqlite::SqliteError;

use crate::fault::of_driver;

/// Primary result codes: the low byte of an extended one.
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const NOMEM: i32 = 7;
    pub(super) const READONLY: i32 = 8;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const PROTOCOL: i32 = 15;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
    /// Extended: our hook refused a commit.
    pub(super) const CONSTRAINT_COMMITHOOK: i32 = 531;
}

/// A handler's error. What is not listed is the handler's own affair and costs an attempt.
pub(super) fn of_handler(error: &sqlx::Error) -> Option<Fault> {
    match of_database(error) {
        Some(code) => by_code(code),
        None => of_driver(error),
    }
}

/// An error of a statement of ours, other than COMMIT.
pub(super) fn of_statement(error: &sqlx::Error) -> Fault {
    match of_database(error) {
        Some(code::CONSTRAINT_COMMITHOOK) => Fault::Aborted,
        Some(code) => by_code(code).unwrap_or(Fault::Refused),
        None => of_driver(error).unwrap_or(Fault::Unavailable),
    }
}

/// An error of COMMIT. BUSY and a deferred constraint leave the transaction open: it did not commit.
/// A write or sync that failed may have put enough on the disk for recovery to find the commit.
pub(super) fn of_commit(error: &sqlx::Error) -> Fault {
    match of_database(error).map(primary) {
        Some(code::BUSY | code::LOCKED) => Fault::Conflict,
        Some(code::CONSTRAINT) => Fault::Refused,
        _ => Fault::Unknown,
    }
}

/// An error of ours with what was being done.
pub(super) fn error(fault: Fault, call: &'static str, source: sqlx::Error) -> StoreError {
    let because = match of_database(&source).map(primary) {
        Some(code::FULL) => ": the disk is full",
        Some(code::READONLY) => ": the database file or its folder is read-only",
        Some(code::CANTOPEN) => ": the database file cannot be opened",
        Some(code::IOERR) => ": the disk failed",
        Some(code::CORRUPT | code::NOTADB) => ": the database file is damaged",
        Some(code::BUSY) => ": another process holds the write lock",
        _ => "",
    };
    StoreError::new(fault, format!("{call}{because}")).with_source(source)
}

fn by_code(code: i32) -> Option<Fault> {
    match primary(code) {
        code::BUSY | code::LOCKED => Some(Fault::Conflict),
        code::PERM
        | code::NOMEM
        | code::READONLY
        | code::IOERR
        | code::CORRUPT
        | code::FULL
        | code::CANTOPEN
        | code::PROTOCOL
        | code::NOTADB => Some(Fault::Unavailable),
        _ => None,
    }
}

fn of_database(error: &sqlx::Error) -> Option<i32> {
    let found = error.as_database_error()?;
    found.try_downcast_ref::<SqliteError>()?;
    found.code()?.parse().ok()
}

const fn primary(code: i32) -> i32 {
    code & 0xff
}
