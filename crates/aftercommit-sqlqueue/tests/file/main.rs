//! What a queue in a file has of its own: leases, the clock, and what can be wrong with the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod contents;
mod faults;
mod leases;
mod support;
