//! Looks for settings that break the promise and changes nothing.

use std::sync::Arc;

use aftercommit_core::{BrokerError, Finding, Subscription};
use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::FieldTable;

use super::{check_names, dead_letter_queue, inspection, name};
use crate::config::Config;
use crate::error::{PRODUCT, code, reason, reply_code, touching};
use crate::link::Link;

pub(crate) async fn check(
    config: &Arc<Config>,
    subscription: &Subscription,
) -> Result<Vec<Finding>, BrokerError> {
    check_names(subscription)?;
    let link = Link::open(config, "check").await?;
    let major = link.seen().server_major();
    let found = over_amqp(config, &link, subscription).await;
    link.close(None).await;
    let mut findings = found?;
    if config.management.is_none() {
        findings.push(unseen(subscription));
        return Ok(findings);
    }
    let source = subscription.source.clone();
    let (config, subscription) = (Arc::clone(config), subscription.clone());
    let looking = tokio::task::spawn_blocking(move || inspection::inspect(&config, &subscription, major));
    match looking.await {
        Ok(Ok(seen)) => findings.extend(seen),
        // What is seen over AMQP still counts: statistics that are down must stop no consumer.
        Ok(Err(error @ BrokerError::Unreachable { .. })) => findings.push(unasked(&source, &error)),
        Ok(Err(error)) => return Err(error),
        Err(error) => {
            let action = "look at the topology";
            return Err(BrokerError::Backend { product: PRODUCT, action, source: Box::new(error) });
        }
    }
    Ok(findings)
}

fn unasked(source: &str, error: &BrokerError) -> Finding {
    Finding::warn(
        format!("queue {source}"),
        format!("its bindings, arguments and policies could not be asked for now: {error}"),
        "see to the management API; the check is made again while the consumer runs",
    )
}

fn unseen(subscription: &Subscription) -> Finding {
    Finding::warn(
        format!("queue {}", subscription.source),
        "its bindings, arguments and policies cannot be seen over AMQP: a missing binding or a limit that \
         drops messages would not be noticed",
        "give the management API's address with Config::with_management",
    )
}

/// What a passive declaration shows: whether it is there.
async fn over_amqp(
    config: &Config,
    link: &Link,
    subscription: &Subscription,
) -> Result<Vec<Finding>, BrokerError> {
    let mut findings = Vec::new();
    let dead = dead_letter_queue(subscription);
    for (queue, lost) in [
        (&subscription.source, "nothing can be consumed"),
        (&dead, "messages that are given up on have no place to go and stay in the source"),
    ] {
        let name = name(queue, "the queue's name")?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let there = link.on_channel(config, async |channel| {
            channel.queue_declare(name, options, FieldTable::default()).await.map(|_| ())
        });
        let place = format!("queue {queue}");
        findings.extend(missing(config, &place, lost, there.await?)?);
    }
    let mut exchanges: Vec<_> = subscription.bindings.iter().map(|binding| &binding.from).collect();
    exchanges.sort();
    exchanges.dedup();
    for exchange in exchanges.into_iter().filter(|exchange| !exchange.is_empty()) {
        let name = name(exchange, "an exchange's name")?;
        let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let there = link.on_channel(config, async |channel| {
            channel.exchange_declare(name, ExchangeKind::Topic, options, FieldTable::default()).await
        });
        let place = format!("exchange {exchange}");
        findings.extend(missing(config, &place, "publishers fail and nothing arrives", there.await?)?);
    }
    Ok(findings)
}

fn missing(
    config: &Config,
    place: &str,
    lost: &str,
    there: Result<(), lapin::Error>,
) -> Result<Option<Finding>, BrokerError> {
    match there {
        Ok(()) => Ok(None),
        Err(error) if reply_code(&error) == Some(code::NOT_FOUND) => Ok(Some(Finding::refuse(
            place,
            format!("it is missing ({}): {lost}", reason(&error)),
            "declare the subscription, or make it as your operators do",
        ))),
        Err(error) => Err(touching(&config.address(), || place.to_owned(), "look at the topology", error)),
    }
}
