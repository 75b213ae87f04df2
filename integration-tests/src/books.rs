//! Databases for the inbox suite.

mod postgres;
mod sqlite;

pub use postgres::PostgresBooks;
pub use sqlite::SqliteBooks;
