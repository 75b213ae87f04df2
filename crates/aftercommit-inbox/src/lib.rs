//! The consumer core of aftercommit: claim, handle, commit, then settle.

pub mod store;

pub use store::{Failures, Fault, InboxStore, Session, StoreError};
