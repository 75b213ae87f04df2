//! A queue of RabbitMQ over an AMQP connection of the lab's own.

mod greeting;

use std::time::Duration;

use async_trait::async_trait;
use lapin::options::{ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use tokio::time::timeout;

use super::{Outside, Sight};
use crate::LabError;
use crate::site::{CONSUMER, Site};

/// How long the server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Rabbit {
    connection: Connection,
    url: String,
    queue: String,
}

impl Rabbit {
    pub(super) async fn open(site: &Site) -> Result<Self, LabError> {
        let what = "opening a connection to RabbitMQ for the view from outside";
        let opening = Connection::connect(&site.broker, ConnectionProperties::default());
        let connection = within(what, opening).await?;
        Ok(Self { connection, url: site.broker.clone(), queue: site.queue() })
    }
}

async fn within<T>(what: &str, call: impl Future<Output = lapin::Result<T>>) -> Result<T, LabError> {
    match timeout(PATIENCE, call).await {
        Ok(answer) => answer.map_err(LabError::doing(what)),
        Err(_) => Err(LabError::failed(format!("{what}: no answer within {PATIENCE:?}"))),
    }
}

#[async_trait]
impl Outside for Rabbit {
    async fn version(&self) -> String {
        let told = timeout(PATIENCE, greeting::version(&self.url)).await;
        told.ok().flatten().unwrap_or_else(|| "unknown".to_owned())
    }

    async fn look(&self) -> Result<Sight, LabError> {
        let what = format!("asking RabbitMQ how many messages are in {}", self.queue);
        let asking = async {
            let channel = self.connection.create_channel().await?;
            let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            let queue =
                channel.queue_declare(self.queue.as_str().into(), passive, FieldTable::default()).await?;
            channel.close(200, "".into()).await?;
            Ok(queue)
        };
        let queue = within(&what, asking).await?;
        Ok(Sight { ready: queue.message_count().into(), held: queue.consumer_count() > 0 })
    }

    async fn remove(&self) -> Result<(), LabError> {
        let what = format!("removing the queue {} from RabbitMQ", self.queue);
        let dead = format!("{}.{CONSUMER}.dead", self.queue);
        let removing = async {
            let channel = self.connection.create_channel().await?;
            for queue in [self.queue.as_str(), &dead] {
                channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await?;
            }
            channel.exchange_delete(self.queue.as_str().into(), ExchangeDeleteOptions::default()).await?;
            self.connection.close(200, "".into()).await
        };
        within(&what, removing).await
    }
}
