use aftercommit_core::{Binding, BrokerError, ConfigError, Subscription};
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};

use super::{check_names, dead_letter_queue, name};
use crate::config::{Config, QueueType};
use crate::error::{code, reply_code, touching};
use crate::link::Link;

/// Makes queue, dead-letter queue, missing exchanges and bindings.
pub(crate) async fn declare(config: &Config, subscription: &Subscription) -> Result<(), BrokerError> {
    check_names(subscription)?;
    let link = Link::open(config, "topology").await?;
    let made = parts(config, &link, subscription).await;
    link.close(None).await;
    made
}

async fn parts(config: &Config, link: &Link, subscription: &Subscription) -> Result<(), BrokerError> {
    source_queue(config, link, &subscription.source).await?;
    // Replicated whatever the source is: a dead letter may be the last copy.
    let dead = dead_letter_queue(subscription);
    unlimited(config, link, &dead, QueueType::Quorum).await?;
    for binding in &subscription.bindings {
        exchange(config, link, &binding.from).await?;
        bind(config, link, &subscription.source, binding).await?;
    }
    Ok(())
}

async fn source_queue(config: &Config, link: &Link, source: &str) -> Result<(), BrokerError> {
    let Some(limit) = config.delivery_limit else {
        return unlimited(config, link, source, config.queue_type).await;
    };
    if limit < 0 && !is_unlimited_by_minus_one(link) {
        return Err(BrokerError::Config(ConfigError::Invalid {
            what: "the delivery limit",
            reason: "below RabbitMQ 4, a negative one loses each message at its first return".to_owned(),
        }));
    }
    let mut arguments = arguments(config.queue_type);
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(limit));
    queue(config, link, source, arguments).await
}

/// RabbitMQ 4 gives quorum queues a delivery limit unless told otherwise.
fn is_unlimited_by_minus_one(link: &Link) -> bool {
    link.seen().server_major().is_some_and(|major| major >= 4)
}

/// A queue without a delivery limit.
async fn unlimited(
    config: &Config,
    link: &Link,
    name: &str,
    queue_type: QueueType,
) -> Result<(), BrokerError> {
    if queue_type == QueueType::Quorum && is_unlimited_by_minus_one(link) {
        let mut explicit = arguments(queue_type);
        explicit.insert("x-delivery-limit".into(), AMQPValue::LongInt(-1));
        match queue(config, link, name, explicit).await {
            // There already, perhaps without the argument: then a policy says it, which the check sees.
            Err(BrokerError::Topology { .. }) => {}
            declared => return declared,
        }
    }
    queue(config, link, name, arguments(queue_type)).await
}

async fn bind(config: &Config, link: &Link, queue: &str, binding: &Binding) -> Result<(), BrokerError> {
    let from = name(&binding.from, "an exchange's name")?;
    let (to, key) = (name(queue, "the queue's name")?, name(&binding.key, "a binding's key")?);
    let bound = link.on_channel(config, async |channel| {
        channel.queue_bind(to, from, key, QueueBindOptions::default(), FieldTable::default()).await
    });
    let place = || format!("binding of queue {queue} to exchange {}", binding.from);
    bound.await?.map_err(|error| touching(&config.address(), place, "bind a queue", error))
}

fn arguments(queue_type: QueueType) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString(queue_type.as_str().into()));
    arguments
}

async fn queue(config: &Config, link: &Link, queue: &str, arguments: FieldTable) -> Result<(), BrokerError> {
    let name = name(queue, "the queue's name")?;
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared =
        link.on_channel(config, async |channel| channel.queue_declare(name, options, arguments).await);
    let place = || format!("queue {queue}");
    declared.await?.map(|_| ()).map_err(|error| touching(&config.address(), place, "declare a queue", error))
}

/// An exchange that is there is taken as it is, whatever its type: it belongs to its publishers.
async fn exchange(config: &Config, link: &Link, exchange: &str) -> Result<(), BrokerError> {
    let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let name = name(exchange, "an exchange's name")?;
    let declaring = async |options| {
        let declaring = async |channel: &Channel| {
            let kind = ExchangeKind::Topic;
            channel.exchange_declare(name.clone(), kind, options, FieldTable::default()).await
        };
        link.on_channel(config, declaring).await
    };
    let mut found = declaring(passive).await?;
    if found.as_ref().is_err_and(|error| reply_code(error) == Some(code::NOT_FOUND)) {
        found = declaring(durable).await?;
    }
    let place = || format!("exchange {exchange}");
    found.map_err(|error| touching(&config.address(), place, "declare an exchange", error))
}
