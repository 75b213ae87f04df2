//! PostgreSQL 13 and later.

mod check;
mod counters;
mod fault;
mod migrate;
mod options;
mod pooler;
mod session;
mod statements;
mod store;

pub use options::PgInboxOptions;
pub use session::PgSession;
pub use store::PgInbox;
