//! What PostgreSQL does to a running consumer: each fault is a test, with RabbitMQ as the broker. In each, every
//! message has one effect in the end, and what was not the message's fault has cost it no attempt.
//!
//! Needs the shared RabbitMQ (`cargo xtask services up rabbitmq`) and PostgreSQL's programs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod blamed;
mod cancelled;
mod commit;
mod conflicts;
mod connections;
mod duplicates;
mod frozen;
mod handlers;
mod settings;
mod stage;
