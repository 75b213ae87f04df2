//! The real program: against real servers where it says so, alone where it needs none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
#![cfg_attr(
    not(all(feature = "rabbitmq", feature = "postgres", feature = "sqlqueue", feature = "sqlite")),
    allow(dead_code, unused_imports, reason = "with fewer features there are fewer tests")
)]

#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
mod consumer_crash;
mod demo;
mod errors;
#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
mod interrupted;
mod migrate;
mod run;
#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
mod servers;
mod sqlqueue;
