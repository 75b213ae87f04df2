//! The node that all trials of this binary share.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use aftercommit_core::BoxError;
use tokio::task::spawn_blocking;
use xtask::services::rabbitmq::{Depths, Node, NodeOptions};

pub(crate) struct Server {
    node: Node,
    depths: Depths,
}

/// Often, so that new policies show soon.
const CONFIG: &str = "collect_statistics_interval = 500\n";

impl Server {
    /// The node, started by the first trial that asks. It ends with this process.
    pub(crate) async fn get() -> Result<&'static Self, BoxError> {
        static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
        let start = || {
            let node = Node::start(NodeOptions { extra_config: CONFIG }).map_err(|error| {
                format!("no private RabbitMQ node: {error}; `cargo xtask setup` installs RabbitMQ")
            })?;
            let depths = node.depths().map_err(|error| error.to_string())?;
            Ok(Self { node, depths })
        };
        spawn_blocking(move || SERVER.get_or_init(start).as_ref().map_err(|error| error.clone().into()))
            .await?
    }

    pub(crate) const fn depths(&self) -> &Depths {
        &self.depths
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.node.amqp_port()).into()
    }

    pub(crate) fn amqp_url(&self) -> String {
        self.node.amqp_url()
    }

    pub(crate) fn management_url(&self) -> String {
        self.node.management_url()
    }

    /// Does something to the node that blocks.
    pub(crate) async fn on<T: Send + 'static>(
        &'static self,
        act: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, BoxError> {
        Ok(spawn_blocking(move || act(&self.node)).await?)
    }
}

/// A URL of the node with another port.
pub(crate) fn through(url: &str, port: u16) -> String {
    let mut url = url::Url::parse(url).unwrap();
    url.set_port(Some(port)).unwrap();
    url.into()
}
