//! PostgreSQL and SQLite inbox stores for aftercommit, on sqlx.
//!
//! Each database is a feature, `postgres` and `sqlite`; none is on by default. `tls` adds TLS for
//! PostgreSQL. A store takes a pool of your own or opens one, has migrations of its own that leave
//! `sqlx::migrate!` alone, and keeps two plain tables that anybody may SELECT from:
//! `inbox_messages` (what was handled) and `inbox_attempts` (what failed or started, and how often).
//!
//! ```no_run
//! # #[cfg(feature = "postgres")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use aftercommit_inbox::InboxStore;
//! use aftercommit_sql::PgInbox;
//!
//! let inbox = PgInbox::connect("postgres://app@localhost/shop").await?;
//! inbox.migrate().await?;
//! inbox.check().await?;
//! # Ok(()) }
//! ```
//!
//! # What handlers may do on their connection
//! Anything but end the transaction. Nested `begin` of sqlx makes savepoints. A handler that sends
//! COMMIT or ROLLBACK itself, or swallows an error that PostgreSQL's transaction does not survive,
//! is found by the store's last statement and has failed; on SQLite its COMMIT does not pass, on
//! PostgreSQL it does, with whatever it had written. `SET` without `LOCAL` stays on the pool's
//! connection.
//!
//! # What is refused at start
//! | PostgreSQL | SQLite |
//! |---|---|
//! | `fsync`, `full_page_writes` or `synchronous_commit` off, `local` with synchronous standbys | WAL with `synchronous` below FULL, `journal_mode` DELETE below EXTRA, MEMORY, OFF |
//! | tables that are missing, of another version, not logged, or without the rights | tables that are missing or of another version |
//! | standbys, read-only transactions, encodings other than UTF8, poolers that do not follow prepared statements | databases in memory, files without the right to write |
//!
//! A failover to an asynchronous standby loses what it had not received, and no setting shows it.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod claimed;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod dialect;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod fault;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod migration;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod names;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod phase;

#[cfg(feature = "postgres")]
pub use dialect::postgres::{PgInbox, PgInboxOptions, PgSession};
#[cfg(feature = "sqlite")]
pub use dialect::sqlite::{SqliteInbox, SqliteInboxOptions, SqliteSession};
/// The driver, in the version whose connections handlers get.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use sqlx;
