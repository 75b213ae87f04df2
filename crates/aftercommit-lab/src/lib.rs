//! Crash experiments: producer and consumer run as processes of their own against a real product, a fault is injected,
//! they are started again, and what is then in database and queue is compared with what must be.
//!
//! - [`Experiment`] runs `consumer-crash`, with the real consumer or with one of the [`Counter`]-experiments that must
//!   fail, and answers with every [`LogLine`] and an evidence [`Card`].
//! - [`Demo`] runs a thousand orders through four crashes.
//! - [`role`] is what the program does when a run starts it as one of its processes.
//!
//! Each run has a queue, an exchange, and a schema or file of its own, which are removed afterwards, also when the run
//! is interrupted.

mod archive;
mod assertion;
mod card;
mod consumer_crash;
mod counter;
mod database;
mod demo;
mod error;
mod line;
mod order;
mod plan;
mod process;
mod product;
mod program;
mod role;
mod site;
mod stage;
mod tally;
mod watch;

pub use archive::store;
pub use assertion::Assertion;
pub use card::{Card, Components, ExitCodes, Verdict};
pub use consumer_crash::{Experiment, Report};
pub use counter::Counter;
pub use demo::{Demo, Figures};
pub use error::LabError;
pub use line::{KEYS, LogLine};
pub use program::{Component, Program};
pub use role::run as role;
pub use watch::Watch;
