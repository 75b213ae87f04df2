//! Against the shared RabbitMQ server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::disallowed_methods, reason = "these tests settle by themselves")]

mod faults;
mod management;
mod oddities;
mod pairing;
mod publisher;
mod raw;
mod source;
mod support;
mod topology;
