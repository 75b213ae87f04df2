//! PostgreSQL and SQLite inbox stores for aftercommit, on sqlx.
