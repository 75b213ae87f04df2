//! The consumer core of aftercommit: **claim, handle, commit, then settle**, for every product and
//! every database.
//!
//! ```text
//! source ─► dispatch ─► lane: begin ─ claim ─ handle ─ prove ─ commit ─► settle: ack | give back | park
//! ```
//!
//! - [`Consumer`] is started on a [`Broker`](aftercommit_core::Broker) with an [`InboxStore`] and a
//!   [`Handler`] or [`BatchHandler`].
//! - One transaction holds the claim of the message ids and the handler's writes; it commits or
//!   nothing of it exists.
//! - Only [`evidence`] tells a broker "done": a commit, a duplicate, or a confirmed dead letter.
//! - The same core runs one message or fifty in a transaction; the promise per message is the same.

mod backoff;
mod consumer;
mod decide;
mod dispatch;
mod error;
pub mod evidence;
mod handler;
pub mod health;
mod job;
mod judge;
mod lane;
mod measures;
mod outcome;
mod pause;
mod rounds;
mod router;
mod running;
mod settings;
mod settle;
mod shutdown;
mod start;
pub mod store;
mod transaction;
mod typed;
mod waiting;
mod work;

pub use consumer::Consumer;
pub use error::ConsumerError;
pub use handler::{BatchFn, BatchHandler, Handled, Handler, HandlerFn, batch_fn, handler_fn};
pub use health::{Complaint, Health};
pub use measures::name as metric;
pub use outcome::Outcome;
pub use router::Router;
pub use running::Running;
pub use shutdown::shutdown_signal;
pub use store::{Failures, Fault, InboxStore, Session, StoreError};
pub use typed::{Typed, json, typed};
