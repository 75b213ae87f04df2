#![doc = include_str!("../README.md")]

mod acker;
mod broker;
mod clock;
mod config;
mod error;
mod file;
mod message;
mod publisher;
mod source;
mod table;
mod topology;

pub use broker::{SqlQueue, connect};
pub use config::Config;
pub use table::Depth;
