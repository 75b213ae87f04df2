//! SQLite 3.37 and later, in a file.

mod check;
mod counters;
mod fault;
mod hooks;
mod migrate;
mod options;
mod session;
mod statements;
mod store;
mod writer;

pub use options::SqliteInboxOptions;
pub use session::SqliteSession;
pub use store::SqliteInbox;
