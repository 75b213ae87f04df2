//! What is sent: the shared story's `order.created`.

use aftercommit::Message;
use serde::{Deserialize, Serialize};

/// What kind of event it is.
pub(crate) const EVENT_TYPE: &str = "order.created";

/// One order of a run. The same number is the same message in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Order(pub(crate) u32);

impl Order {
    pub(crate) fn message_id(self) -> String {
        format!("mid-{}", self.0)
    }

    /// As the consumer sees it.
    pub(crate) fn message(self) -> Message {
        let Self(number) = self;
        let (id, order) = (self.message_id(), format!("order-{}", 1000 + number));
        let body = serde_json::json!({
            "eventId": id, "orderId": order, "customerId": format!("customer-{}", number % 100),
            "amount": 19.9, "currency": "EUR", "occurredAt": "2026-01-01T00:00:00Z",
        });
        let mut message =
            Message::new(body.to_string()).with_id(id).with_type(EVENT_TYPE).with_key(order.clone());
        message.schema_version = Some("1".to_owned());
        message.aggregate_id = Some(order);
        message.trace_id = Some(format!("trace-{number}"));
        message.correlation_id = Some(format!("correlation-{number}"));
        message
    }
}

/// The id of a message as text. Nobody else writes to a run's queue, so there always is one.
pub(crate) fn id_of(message: &Message) -> String {
    String::from_utf8_lossy(message.id.as_deref().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_are_those_of_the_experiment() {
        let message = Order(1).message();
        assert_eq!(id_of(&message), "mid-1");
        assert_eq!(message.aggregate_id.as_deref(), Some("order-1001"));
        assert_eq!(message.trace_id.as_deref(), Some("trace-1"));
        assert_eq!(message.schema_version.as_deref(), Some("1"));
    }
}
