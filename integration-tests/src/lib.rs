//! What the tests across crates share: databases and queues of their own, private servers, counters read from
//! outside, foreign publishers, and the soak.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

pub mod books;
pub mod counted;
pub mod database;
pub mod foreign;
pub mod node;
pub mod queue;
pub mod soak;
pub mod until;
