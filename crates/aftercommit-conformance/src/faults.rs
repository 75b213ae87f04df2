//! Decorators that make calls over a seam crash, fail, lose their answer or wait.
//!
//! A [`Script`] numbers every point before and after a call over a seam. A clean run with
//! [`Script::record`] lists the points; a test then runs again with a fault at each of them:
//!
//! ```
//! use aftercommit_conformance::faults::{Fault, Script};
//!
//! # async fn scenario(script: Script) {}
//! # async fn example() {
//! let clean = Script::record();
//! scenario(clean.clone()).await;
//! for point in clean.trace() {
//!     let script = Script::record().with(point.number, Fault::Crash);
//!     tokio::select! {
//!         () = scenario(script.clone()) => {}
//!         _ = script.crashed() => {} // the scenario is dropped here, as a process that dies
//!     }
//!     // … a new process on a new connection finishes the work: nothing is lost …
//! }
//! # }
//! ```
//!
//! Product code has no fault points; these decorators stand around it.

mod acker;
mod broker;
mod handler;
mod publisher;
mod script;
mod source;
mod store;

#[cfg(test)]
mod tests;

pub use acker::FaultyAcker;
pub use broker::FaultyBroker;
pub use handler::FaultyHandler;
pub use publisher::FaultyPublisher;
pub use script::{Action, Fault, Injected, Point, Script, Seam, Side};
pub use source::FaultySource;
pub use store::{FaultySession, FaultyStore, Outage};
