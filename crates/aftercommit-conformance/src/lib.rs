//! Suites that any broker or store of aftercommit must pass, fault decorators and a fault proxy.
//!
//! A product calls its suite once, from a test target without the standard harness:
//!
//! ```no_run
//! use std::process::ExitCode;
//! use std::sync::Arc;
//! use aftercommit_conformance::{broker, trial};
//!
//! // `fn main()` of the test target, with the product's own fixture
//! fn run(fixture: Arc<dyn broker::BrokerFixture>) -> ExitCode {
//!     broker::main(&fixture, trial::runtime)
//! }
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`trial`] | a trial as data: run by the test harness or by a program |
//! | [`broker`] | the trials that a [`Broker`](aftercommit_core::Broker) must pass |
//! | [`faults`] | decorators that crash, fail or lose an answer at a chosen call |
//! | [`inbox`] | the trials that the consumer core must pass on a product with a database |
//! | [`proxy`] | a TCP proxy that breaks connections on command |
//! | [`store`] | the trials that an [`InboxStore`](aftercommit_inbox::InboxStore) must pass |

pub mod broker;
pub mod faults;
pub mod inbox;
pub mod proxy;
pub mod store;
pub mod trial;
