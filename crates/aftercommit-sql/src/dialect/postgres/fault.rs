//! What PostgreSQL's errors mean, by SQLSTATE. Texts are translated by `lc_messages` and never read.

use aftercommit_inbox::{Fault, StoreError};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::fault::of_driver;

const READ_ONLY: &str = "25006";

/// A handler's error. What is not listed is the handler's own affair and costs an attempt: a lock
/// that its statement waited for (55P03), a statement that took too long (57014), a transaction that
/// it left idle for too long (25P03).
pub(super) fn of_handler(error: &sqlx::Error) -> Option<Fault> {
    match of_database(error) {
        Some(found) => by_code(found.code()),
        None => of_driver(error),
    }
}

/// An error of a statement of ours, other than COMMIT.
pub(super) fn of_statement(error: &sqlx::Error) -> Fault {
    let Some(found) = of_database(error) else {
        // Protocol errors and the like: the connection cannot be trusted any more.
        return of_driver(error).unwrap_or(Fault::Unavailable);
    };
    match found.code() {
        // Somebody holds what we wait for, or ended our wait: run again.
        "55P03" | "57014" => Fault::Conflict,
        // A handler swallowed an error, ended the transaction itself, or left it idle for too long.
        "25P01" | "25P02" | "25P03" | "3B001" => Fault::Aborted,
        "42P01" | "42703" | "3F000" => Fault::Schema,
        // A failover left us on a standby.
        READ_ONLY => Fault::Unavailable,
        code => by_code(code).unwrap_or(Fault::Refused),
    }
}

/// An error of the last statement. Where claims could be written, only a handler can have made the
/// transaction read-only. It waits for nobody: what cancels it is a COPY that a handler left
/// unfinished, or a server that does nothing any more.
pub(super) fn of_proof(error: &sqlx::Error) -> Fault {
    match of_database(error).map(PgDatabaseError::code) {
        Some(READ_ONLY) => Fault::Aborted,
        Some("57014") => Fault::Unavailable,
        _ => of_statement(error),
    }
}

/// An error of COMMIT.
///
/// PostgreSQL answers COMMIT with ERROR only while it can still roll back (later it escalates to
/// PANIC), so ERROR is "not committed". Not believed are FATAL and PANIC, and these classes, which
/// poolers, proxies and compatible servers also use for "I do not know":
///
/// | SQLSTATE | what | fault |
/// |---|---|---|
/// | 08 | connection exception | unknown |
/// | 40003 | statement completion unknown | unknown |
/// | 53 | out of memory, disk or connections | unknown |
/// | 57 | operator intervention: shutdown, crash, cancel | unknown |
/// | 58, XX | system and internal errors | unknown |
/// | 40001, 40P01, 55P03 | serialization failure, deadlock, lock wait | conflict |
/// | 23, 44, P0, 22, 25, 42, all others | deferred constraints and triggers that said no | refused |
///
/// Unlisted codes are definite, because a deferred trigger may raise any code it likes, and calling
/// it unknown would run the message for ever without an attempt.
pub(super) fn of_commit(error: &sqlx::Error) -> Fault {
    let Some(found) = of_database(error) else {
        return Fault::Unknown;
    };
    let code = found.code();
    let doubtful = ["08", "53", "57", "58", "XX"].iter().any(|class| code.starts_with(class));
    if doubtful || code == "40003" || found.severity() != PgSeverity::Error {
        return Fault::Unknown;
    }
    match code {
        "40001" | "40P01" | "55P03" => Fault::Conflict,
        _ => Fault::Refused,
    }
}

/// An error of ours with what was being done.
pub(super) fn error(fault: Fault, call: &'static str, source: sqlx::Error) -> StoreError {
    let code = of_database(&source).map(PgDatabaseError::code);
    let what = match (fault, code) {
        (_, Some("42P05" | "26000" | "08P01")) => format!(
            "{call}: the pooler in front of PostgreSQL does not follow prepared statements: \
             set its max_prepared_statements, or PgInboxOptions::named_statements(false)"
        ),
        (_, Some(READ_ONLY)) => {
            format!(
                "{call}: the server takes no writes: connect to the primary, or set default_transaction_read_only = off"
            )
        }
        (Fault::Schema, _) => {
            format!("{call}: the inbox's tables are missing or of another version: run migrate()")
        }
        _ => call.to_owned(),
    };
    StoreError::new(fault, what).with_source(source)
}

fn of_database(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// Poolers that lost our prepared statements, connections, credentials, a missing database, resources, a server that stops or starts, the system.
const AWAY: [&str; 13] =
    ["42P05", "26000", "40003", "57P01", "57P02", "57P03", "57P04", "57P05", "08", "28", "3D", "53", "58"];

fn by_code(code: &str) -> Option<Fault> {
    if matches!(code, "40001" | "40P01") {
        return Some(Fault::Conflict);
    }
    AWAY.iter().any(|away| code.starts_with(away)).then_some(Fault::Unavailable)
}
