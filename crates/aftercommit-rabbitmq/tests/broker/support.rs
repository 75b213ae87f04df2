//! The shared server, and names that no other run uses.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{
    Broker, Delivery, Destination, Message, Outgoing, PublishError, Publisher, Receipt, Source, Subscription,
};
use aftercommit_rabbitmq::{Config, QueueType};
use tokio::time::timeout;

use crate::management;

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a test looks for something that must not come.
pub(crate) const QUIET: Duration = Duration::from_millis(300);

pub(crate) fn config() -> Config {
    let management = xtask::services::rabbitmq::management_url().expect("AFTERCOMMIT_PORT_BASE");
    Config::new(&xtask::services::rabbitmq::url().expect("AFTERCOMMIT_PORT_BASE"))
        .and_then(|config| config.with_management(&management))
        .expect("the shared server's URLs")
}

pub(crate) async fn broker(config: Config) -> Arc<dyn Broker> {
    aftercommit_rabbitmq::connect(config).await.unwrap_or_else(|error| {
        panic!("{error}\nThe tests need RabbitMQ: start it with `cargo xtask services up rabbitmq`")
    })
}

pub(crate) fn unique(what: &str) -> String {
    format!("test.{what}.{}", uuid::Uuid::new_v4().simple())
}

/// A declared queue without bindings, reached through the default exchange.
pub(crate) struct Queue {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) subscription: Subscription,
}

impl Queue {
    pub(crate) async fn new(what: &str) -> Self {
        Self::with(config(), what, None).await
    }

    pub(crate) async fn classic(what: &str) -> Self {
        Self::with(config().with_queue_type(QueueType::Classic), what, None).await
    }

    pub(crate) async fn with(config: Config, what: &str, prefetch: Option<u16>) -> Self {
        let broker = broker(config).await;
        let mut subscription = Subscription::new("tester", unique(what)).unwrap();
        if let Some(prefetch) = prefetch {
            subscription = subscription.with_prefetch(prefetch).unwrap();
        }
        broker.declare(&subscription).await.unwrap();
        Self { broker, subscription }
    }

    /// For a source that the test made itself.
    pub(crate) fn of(broker: Arc<dyn Broker>, subscription: Subscription) -> Self {
        Self { broker, subscription }
    }

    pub(crate) fn destination(&self) -> Destination {
        Destination::new("").with_routing_key(&self.subscription.source)
    }

    pub(crate) async fn source(&self) -> Box<dyn Source> {
        self.broker.source(&self.subscription).await.unwrap()
    }

    pub(crate) async fn publish(&self, bodies: impl IntoIterator<Item = impl ToString>) {
        let publisher = self.broker.publisher().await.unwrap();
        for body in bodies {
            send(&*publisher, self.destination(), Message::new(body.to_string())).await.unwrap();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let dead = self.broker.dead_letter(&self.subscription).routing_key;
        let queues = [&self.subscription.source, &dead].map(|queue| format!("queues/%2f/{queue}"));
        let exchanges =
            self.subscription.bindings.iter().map(|bound| format!("exchanges/%2f/{}", bound.from));
        management::forget(queues.into_iter().chain(exchanges).collect());
    }
}

pub(crate) async fn send(
    publisher: &dyn Publisher,
    to: Destination,
    message: Message,
) -> Result<Receipt, PublishError> {
    publisher.publish(Outgoing::new(to, message)).await
}

pub(crate) async fn one(source: &mut Box<dyn Source>) -> Delivery {
    let batch = timeout(PATIENCE, source.recv(1)).await.expect("no delivery").unwrap();
    batch.into_iter().next().unwrap()
}

pub(crate) async fn many(source: &mut Box<dyn Source>, count: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    while deliveries.len() < count {
        let left = count - deliveries.len();
        let batch = timeout(PATIENCE, source.recv(left)).await.expect("too few deliveries").unwrap();
        deliveries.extend(batch);
    }
    deliveries
}

pub(crate) async fn nothing(source: &mut Box<dyn Source>) {
    if let Ok(batch) = timeout(QUIET, source.recv(1)).await {
        panic!("nothing was to come: {batch:?}");
    }
}

pub(crate) fn text(delivery: &Delivery) -> String {
    String::from_utf8(delivery.message.body.as_deref().unwrap_or_default().to_vec()).unwrap()
}

pub(crate) async fn ack(
    delivery: Delivery,
) -> Result<aftercommit_core::Settled, aftercommit_core::SettleError> {
    delivery.into_acker().ack().await
}
