//! The servers, and the proxies before them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use aftercommit_conformance::proxy::Proxy;
use aftercommit_core::Publisher;
use aftercommit_rabbitmq::Config;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;
use xtask::services::{postgres, rabbitmq};

use super::{CONSUMER, QUEUES};
use crate::database::Database;
use crate::node::{self, Private};
use crate::queue::Queue;

pub(super) struct World {
    pub(super) rabbitmq: Private<rabbitmq::Node>,
    pub(super) postgres: Private<postgres::Node>,
    pub(super) before_rabbitmq: Proxy,
    pub(super) before_postgres: Proxy,
    /// Directly, for looking.
    pub(super) db: Database,
    pub(super) queues: [Queue; 2],
}

impl World {
    pub(super) async fn start() -> Self {
        let (rabbitmq, postgres) = tokio::join!(node::rabbitmq(""), node::postgres(""));
        let before = |port| Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).expect("a free port");
        let url = rabbitmq.amqp_url();
        let queues = [Queue::on(&url, CONSUMER, QUEUES[0]).await, Queue::on(&url, CONSUMER, QUEUES[1]).await];
        let db = Database::create(&postgres.url(), "soak").await;
        let (before_rabbitmq, before_postgres) = (before(rabbitmq.amqp_port()), before(postgres.port()));
        Self { rabbitmq, postgres, before_rabbitmq, before_postgres, db, queues }
    }

    /// As consumers and the publisher reach it: through the proxy.
    pub(super) fn amqp_url(&self) -> String {
        let (own, proxy) = (self.rabbitmq.amqp_port(), self.before_rabbitmq.addr().port());
        self.rabbitmq.amqp_url().replace(&format!(":{own}/"), &format!(":{proxy}/"))
    }

    /// As consumers reach it: through the proxy.
    pub(super) fn database(&self) -> Database {
        let port = self.before_postgres.addr().port();
        self.db.with(|server| server.port(port))
    }

    pub(super) async fn publisher(&self) -> Box<dyn Publisher> {
        let config = Config::new(&self.amqp_url()).expect("a RabbitMQ URL");
        // Shorter than the default: it is sent again, and a soak is for many faults.
        let config = config.with_publish_deadline(Duration::from_secs(3)).expect("not zero");
        loop {
            let Ok(broker) = aftercommit_rabbitmq::connect(config.clone()).await else { continue };
            if let Ok(publisher) = broker.publisher().await {
                return publisher;
            }
        }
    }

    /// How many effects there are; `None` while PostgreSQL is away.
    pub(super) async fn applied(&self) -> Option<usize> {
        let asking = async {
            let mut conn = PgConnection::connect_with(&self.db.outside()).await?;
            sqlx::query_scalar::<_, i64>("SELECT count(*) FROM effects").fetch_one(&mut conn).await
        };
        let count = timeout(Duration::from_secs(2), asking).await.ok()?.ok()?;
        usize::try_from(count).ok()
    }
}
