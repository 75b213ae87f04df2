//! PostgreSQL and SQLite inbox stores for aftercommit, on sqlx.
//!
//! Each database is a feature, `postgres` and `sqlite`; none is on by default. `tls` adds TLS for
//! PostgreSQL. A store takes a pool of your own or opens one, has migrations of its own that leave
//! `sqlx::migrate!` alone, and keeps two plain tables that anybody may SELECT from:
//! `inbox_messages` (what was handled) and `inbox_attempts` (what failed or started, and how often).

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
