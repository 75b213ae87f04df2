//! A queue of its own on RabbitMQ, and what is published to it.

use std::sync::Arc;

use aftercommit_core::{Broker, Destination, Message, Outgoing, Publisher, Subscription};
use aftercommit_rabbitmq::Config;
use futures_util::StreamExt;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};

use crate::until::{PATIENCE, until};

/// A declared queue and the consumer it belongs to.
#[derive(Clone)]
pub struct Queue {
    /// The broker.
    pub broker: Arc<dyn Broker>,
    /// The consumer's name, and the queue's.
    pub subscription: Subscription,
    url: String,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}

impl Queue {
    /// A queue on the server that all tests share, for a consumer of the same name.
    ///
    /// # Panics
    ///
    /// When the server is not there; the text names the command that starts it.
    ///
    /// # Cancel safety
    ///
    /// The queue may have been declared.
    pub async fn shared(name: &str) -> Self {
        Self::on(&xtask::services::rabbitmq::url().expect("AFTERCOMMIT_PORT_BASE"), name, name).await
    }

    /// A queue on another server, for a consumer of this name.
    ///
    /// # Panics
    ///
    /// As [`shared`](Self::shared).
    ///
    /// # Cancel safety
    ///
    /// As [`shared`](Self::shared).
    pub async fn on(url: &str, consumer: &str, queue: &str) -> Self {
        let broker = aftercommit_rabbitmq::connect(Config::new(url).expect("a RabbitMQ URL")).await;
        let broker = broker.unwrap_or_else(|error| {
            panic!("{error}\nThe tests need RabbitMQ: start it with `cargo xtask services up rabbitmq`")
        });
        let subscription = Subscription::new(consumer, queue).expect("plain names");
        broker.declare(&subscription).await.expect("a new queue");
        Self { broker, subscription, url: url.to_owned() }
    }

    /// The consumer's name.
    #[must_use]
    pub fn consumer(&self) -> &str {
        self.subscription.consumer.as_str()
    }

    /// Where messages for this queue go.
    #[must_use]
    pub fn destination(&self) -> Destination {
        Destination::new("").with_routing_key(&self.subscription.source)
    }

    /// A publisher.
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn publisher(&self) -> Box<dyn Publisher> {
        self.broker.publisher().await.expect("a publisher")
    }

    /// Publishes a message per id, the id as its body, and waits for all answers.
    ///
    /// # Panics
    ///
    /// When one is not positive.
    ///
    /// # Cancel safety
    ///
    /// Some may have been sent.
    pub async fn publish<I: AsRef<str>>(&self, ids: impl IntoIterator<Item = I>) {
        let publisher = self.publisher().await;
        let sends = ids.into_iter().map(|id| {
            let id = id.as_ref().to_owned();
            publisher.publish(Outgoing::new(self.destination(), Message::new(id.clone()).with_id(id)))
        });
        let answers: Vec<_> = futures_util::stream::iter(sends).buffered(200).collect().await;
        answers.into_iter().for_each(|answer| drop(answer.expect("a positive answer")));
    }

    async fn has(&self, queue: &str, wanted: u32) {
        until(&format!("{wanted} messages in {queue}"), PATIENCE, || async {
            match depth(&self.url, queue).await {
                Ok(found) if found == wanted => Ok(()),
                Ok(found) => Err(format!("{found} are there")),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    /// Waits until nothing is left to hand out. What is out to consumers is not counted: ask when none is there.
    ///
    /// # Panics
    ///
    /// When that is not so in time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn is_empty(&self) {
        self.has(&self.subscription.source, 0).await;
    }

    /// Waits until the dead letters are as many.
    ///
    /// # Panics
    ///
    /// When that is not so in time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn has_dead_letters(&self, count: u32) {
        self.has(&self.broker.dead_letter(&self.subscription).routing_key, count).await;
    }
}

/// How many messages a queue has to hand out, asked over a connection of its own.
async fn depth(url: &str, queue: &str) -> lapin::Result<u32> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let found = channel.queue_declare(queue.into(), passive, FieldTable::default()).await?.message_count();
    connection.close(200, "".into()).await?;
    Ok(found)
}
