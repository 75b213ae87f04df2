//! Against the shared RabbitMQ server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::disallowed_methods, reason = "these tests settle by themselves")]

mod publisher;
mod source;
mod support;
