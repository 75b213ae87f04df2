use aftercommit::core::ConfigError;
use aftercommit::{Message, Subscription};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The exchange that `order-service` publishes to.
pub const EVENTS: &str = "orders.events";

/// The body of `order.created`, version 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderCreated {
    /// The same as the message's id.
    pub event_id: String,
    /// Which order.
    pub order_id: String,
    /// Whose order.
    pub customer_id: String,
    /// What it costs.
    pub amount: f64,
    /// In which currency.
    pub currency: String,
    /// When it was created (RFC 3339).
    pub occurred_at: String,
}

impl OrderCreated {
    /// The `number`th order of a run.
    #[must_use]
    pub fn example(run: &str, number: usize) -> Self {
        Self {
            event_id: format!("{run}-{number}"),
            order_id: format!("order-{run}-{number}"),
            customer_id: format!("customer-{}", number % 100),
            amount: 19.9,
            currency: "EUR".into(),
            occurred_at: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
        }
    }

    /// The message as `order-service` publishes it: the id travels in the native place, and the order's id is the
    /// ordering key.
    ///
    /// # Errors
    /// When the amount is no number that JSON can write.
    pub fn message(&self) -> Result<Message, serde_json::Error> {
        let mut message = Message::new(serde_json::to_vec(self)?)
            .with_id(self.event_id.clone())
            .with_type("order.created")
            .with_key(self.order_id.clone());
        message.schema_version = Some("1".into());
        message.aggregate_id = Some(self.order_id.clone());
        message.occurred_at = OffsetDateTime::parse(&self.occurred_at, &Rfc3339).ok();
        Ok(message)
    }
}

/// What `inventory-service` reads: its own queue, bound to the events of `order-service`.
///
/// # Errors
/// Never for these names.
pub fn subscription() -> Result<Subscription, ConfigError> {
    Ok(Subscription::new("inventory-service", "inventory.orders")?.with_binding(EVENTS, "order.created"))
}
