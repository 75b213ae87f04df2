//! RabbitMQ: the shared server, and private nodes.

mod depths;
mod node;
mod probe;
mod server;
mod shared;

pub use depths::{Depth, Depths};
pub use node::{Node, NodeOptions};
pub use shared::{Shared, management_url, url};

fn amqp_url_at(port: u16) -> String {
    format!("amqp://guest:guest@127.0.0.1:{port}/%2f")
}

fn management_url_at(port: u16) -> String {
    format!("http://guest:guest@127.0.0.1:{port}")
}
