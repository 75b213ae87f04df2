//! Whether the user may do what a consumer does.

use aftercommit_core::{BrokerError, Finding, Subscription};
use regex_lite::Regex;
use serde_json::Value;

use super::dead_letter_queue;
use super::management::Api;
use crate::config::Config;

/// The default exchange's name in permissions.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// Permissions are shown to administrators only; for others this finds nothing, and a missing one
/// shows when it is needed.
pub(super) fn findings(
    api: &Api<'_>,
    config: &Config,
    subscription: &Subscription,
) -> Result<Vec<Finding>, BrokerError> {
    let permissions = match api.get("permissions", &[&config.user]) {
        Ok(Some(permissions)) => permissions,
        Ok(None) | Err(BrokerError::Denied { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let dead = dead_letter_queue(subscription);
    let needed = [
        ("read", subscription.source.as_str(), "the source cannot be consumed"),
        ("read", dead.as_str(), "dead letters cannot be read"),
        ("write", DEFAULT_EXCHANGE, "dead letters cannot be written"),
    ];
    let lacking = needed.into_iter().filter(|(kind, name, _)| lacks(&permissions, kind, name));
    Ok(lacking.map(|needed| finding(config, needed)).collect())
}

fn lacks(permissions: &Value, kind: &str, name: &str) -> bool {
    match permissions[kind].as_str() {
        // As the broker has it: the empty pattern stands for nothing.
        Some("") => true,
        // What only Erlang's expressions can say is left to the broker.
        Some(pattern) => Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(name)),
        None => false,
    }
}

fn finding(config: &Config, (kind, name, lost): (&str, &str, &str)) -> Finding {
    Finding::refuse(
        format!("permissions of user {}", config.user),
        format!("no permission to {kind} {name}: {lost}"),
        format!("let the pattern for {kind} match {name} with rabbitmqctl set_permissions"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_the_broker_reads_them() {
        let permissions = serde_json::json!({ "read": "^orders", "write": "", "configure": ".*" });
        assert!(!lacks(&permissions, "read", "orders.eu"));
        assert!(lacks(&permissions, "read", "payments"));
        assert!(lacks(&permissions, "write", "anything"));
        assert!(!lacks(&permissions, "configure", "anything"));
        assert!(!lacks(&serde_json::json!({ "read": "(?P>broken" }), "read", "orders"));
    }
}
