//! PostgreSQL: the shared server, and private nodes.

mod node;
mod server;
mod shared;

pub use node::{Node, NodeOptions, Shutdown};
pub use shared::{Shared, url};

fn url_at(port: u16) -> String {
    format!("postgres://aftercommit@127.0.0.1:{port}/aftercommit")
}
