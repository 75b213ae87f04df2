//! Queues, exchanges and bindings: making what is ours, and looking at what is there.

mod check;
mod declare;
mod inspection;
mod management;
mod permissions;
mod queue;

use aftercommit_core::{BrokerError, ConfigError, Destination, Subscription};
use lapin::types::ShortString;

use crate::message::short;

pub(crate) use check::check;
pub(crate) use declare::declare;

/// AMQP's limit for names.
const LONGEST_NAME: usize = 255;

/// A name as AMQP has it.
pub(crate) fn name(text: &str, what: &'static str) -> Result<ShortString, BrokerError> {
    let too_large = || ConfigError::TooLarge { what, found: text.len(), most: LONGEST_NAME };
    short(text, what).map_err(|_| too_large().into())
}

/// The queue of one consumer's dead letters. Each consumer has its own, since consumers of one queue
/// give up on different messages.
pub(crate) fn dead_letter_queue(subscription: &Subscription) -> String {
    format!("{}.{}.dead", subscription.source, subscription.consumer)
}

/// Fails before anything is sent if a name is too long for AMQP.
fn check_names(subscription: &Subscription) -> Result<(), BrokerError> {
    name(&subscription.source, "the queue's name")?;
    name(&dead_letter_queue(subscription), "the dead-letter queue's name")?;
    for binding in &subscription.bindings {
        name(&binding.from, "an exchange's name")?;
        name(&binding.key, "a binding's key")?;
    }
    Ok(())
}

/// The default exchange leads to every queue by its name and cannot be unbound.
pub(crate) fn dead_letter(subscription: &Subscription) -> Destination {
    Destination::new("").with_routing_key(dead_letter_queue(subscription))
}
