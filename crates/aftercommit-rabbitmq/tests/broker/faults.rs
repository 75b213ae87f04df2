//! What goes wrong in the field.

mod access;
mod connection;
mod node;
mod queue;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_conformance::proxy::Proxy;
use aftercommit_core::{Broker, Signal, Source};
use aftercommit_rabbitmq::Config;
use tokio::time::{Instant, sleep};
use url::Url;

use crate::support::{PATIENCE, Queue, broker};

/// A queue of the shared server, reached by a proxy.
struct Proxied {
    proxy: Arc<Proxy>,
    direct: Queue,
    broker: Arc<dyn Broker>,
}

impl Proxied {
    async fn new(what: &str) -> Self {
        Self::with(what, |config| config).await
    }

    async fn with(what: &str, configure: impl FnOnce(Config) -> Config) -> Self {
        let direct = Queue::new(what).await;
        let mut url = Url::parse(&xtask::services::rabbitmq::url().unwrap()).unwrap();
        let upstream = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5672));
        let proxy = Proxy::start(upstream.parse::<SocketAddr>().expect("an address of numbers")).unwrap();
        url.set_port(Some(proxy.addr().port())).unwrap();
        let broker = broker(configure(Config::new(url.as_str()).unwrap())).await;
        Self { proxy: Arc::new(proxy), direct, broker }
    }

    async fn source(&self) -> Box<dyn Source> {
        self.broker.source(&self.direct.subscription).await.unwrap()
    }
}

/// Waits for a condition, bounded.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn until_up(health: &Signal) {
    until("health is up", || health.is_up()).await;
}

async fn until_down(health: &Signal) {
    until("health is down", || !health.is_up()).await;
}
