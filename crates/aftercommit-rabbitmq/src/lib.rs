#![doc = include_str!("../README.md")]

mod acker;
mod backoff;
mod broker;
mod config;
mod error;
mod link;
mod message;
mod publisher;
mod source;
mod topology;
mod wire;

pub use broker::{RabbitMq, connect};
pub use config::{Config, QueueType, Sasl};
