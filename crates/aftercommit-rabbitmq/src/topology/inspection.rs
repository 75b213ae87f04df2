//! What the management API shows of a subscription's topology.

use std::thread::sleep;
use std::time::{Duration, Instant};

use aftercommit_core::{BrokerError, Finding, Subscription};
use serde_json::Value;

use super::management::Api;
use super::permissions;
use super::queue::{Queue, Role, Target};
use super::{dead_letter_queue, queue};
use crate::config::Config;

/// Policies are shown with the statistics, which a new queue has after a few seconds.
const STATISTICS: Duration = Duration::from_secs(15);

/// Blocking: looks at queues, bindings, exchanges and permissions. What is missing altogether is
/// told by the check over AMQP.
pub(super) fn inspect(
    config: &Config,
    subscription: &Subscription,
    major: Option<u32>,
) -> Result<Vec<Finding>, BrokerError> {
    let Some(management) = &config.management else { return Ok(Vec::new()) };
    let api = Api::new(config, management)?;
    let mut findings = Vec::new();
    let dead = dead_letter_queue(subscription);
    let source = Role::Source { starts: config.starts };
    for (name, role) in [(&subscription.source, source), (&dead, Role::DeadLetters)] {
        let Some(json) = settled(&api, name)? else { continue };
        let queue = Queue::new(name, &json);
        let target = target(&api, &queue)?;
        findings.extend(queue::findings(&queue, role, target, major));
    }
    if api.get("queues", &[&subscription.source])?.is_some() {
        findings.extend(bindings(&api, subscription)?);
    }
    findings.extend(permissions::findings(&api, config, subscription)?);
    Ok(findings)
}

/// The queue with its policies.
fn settled(api: &Api<'_>, name: &str) -> Result<Option<Value>, BrokerError> {
    let since = Instant::now();
    loop {
        let Some(json) = api.get("queues", &[name])? else { return Ok(None) };
        if Queue::new(name, &json).shows_policies() || since.elapsed() > STATISTICS {
            return Ok(Some(json));
        }
        sleep(Duration::from_millis(500));
    }
}

/// Whether the queue's dead-letter exchange leads anywhere.
fn target(api: &Api<'_>, queue: &Queue<'_>) -> Result<Target, BrokerError> {
    let Some(exchange) = queue.dead_letter_exchange() else { return Ok(Target::None) };
    let leads = if exchange.is_empty() {
        let key = queue.dead_letter_routing_key().unwrap_or_default();
        api.get("queues", &[&key])?.is_some()
    } else {
        let bound = api.get("exchanges", &[&exchange, "bindings", "source"])?;
        bound.as_ref().and_then(Value::as_array).is_some_and(|bindings| !bindings.is_empty())
    };
    Ok(if leads { Target::Leads } else { Target::Nowhere })
}

fn bindings(api: &Api<'_>, subscription: &Subscription) -> Result<Vec<Finding>, BrokerError> {
    let queue = &subscription.source;
    let Some(Value::Array(there)) = api.get("queues", &[queue, "bindings"])? else { return Ok(Vec::new()) };
    let is = |json: &Value, field: &str, text: &str| json[field].as_str() == Some(text);
    let mut findings = Vec::new();
    for binding in &subscription.bindings {
        let (from, key) = (&binding.from, &binding.key);
        if !there.iter().any(|json| is(json, "source", from) && is(json, "routing_key", key)) {
            findings.push(Finding::refuse(
                format!("binding of queue {queue} to exchange {from} with key {key:?}"),
                "it is missing: messages published there do not arrive, and a positive confirm does not show it",
                format!(
                    "declare the subscription, or run: rabbitmqadmin declare binding source={from} \
                     destination={queue} routing_key={key}"
                ),
            ));
        }
        if let Some(exchange) = api.get("exchanges", &[from])?
            && exchange["durable"] == Value::Bool(false)
        {
            findings.push(Finding::warn(
                format!("exchange {from}"),
                "it is not durable: a restart of the broker removes it with its bindings",
                "declare it durable",
            ));
        }
    }
    Ok(findings)
}
