//! The chores of this workspace, and real servers for its tests.
//!
//! As a program (`cargo xtask`) it installs, starts, tests and checks. As a library it starts private server nodes
//! that a test may restart, kill and configure as it likes: [`services::postgres::Node`] and
//! [`services::rabbitmq::Node`]. The servers shared by all tests are found with
//! [`services::postgres::url`] and [`services::rabbitmq::url`].
//!
//! ```no_run
//! use xtask::services::rabbitmq::{Node, NodeOptions};
//!
//! let node = Node::start(NodeOptions { extra_config: "channel_tick_interval = 1000" })?;
//! println!("{}", node.amqp_url());
//! node.kill()?;
//! node.start_again()?;
//! # Ok::<(), xtask::Error>(())
//! ```
//!
//! Everything here is blocking: call it from `spawn_blocking` where that matters.

mod error;
pub mod ports;
mod process;
pub mod python;
pub mod services;
mod wait;

pub use error::{Error, Result};
