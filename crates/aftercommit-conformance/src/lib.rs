//! Suites that any broker or store of aftercommit must pass, fault decorators and a fault proxy.
//!
//! A product calls its suite once, from a test target without the standard harness:
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     aftercommit_conformance::broker::main(&fixture, runtime)
//! }
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`trial`] | a trial as data: run by the test harness or by a program |
//! | [`broker`] | the trials that a [`Broker`](aftercommit_core::Broker) must pass |
//! | [`faults`] | decorators that crash, fail or lose an answer at a chosen call |
//! | [`proxy`] | a TCP proxy that breaks connections on command |

pub mod broker;
pub mod faults;
pub mod proxy;
pub mod trial;
