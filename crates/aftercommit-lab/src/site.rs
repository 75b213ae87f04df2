//! Where one run takes place: names of its own on broker and database.

use aftercommit::core::ConfigError;
use aftercommit::{Destination, Subscription};
use serde::{Deserialize, Serialize};

use crate::order::EVENT_TYPE;

/// Who consumes.
pub(crate) const CONSUMER: &str = "inventory-service";
/// Who produces.
pub(crate) const PRODUCER: &str = "order-service";

/// What every process of a run knows. Holds URLs, which may have passwords in them: no `Debug`, and never on a command
/// line.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Site {
    /// The experiment's name.
    pub(crate) lab: String,
    /// The broker's product.
    pub(crate) product: String,
    pub(crate) broker: String,
    pub(crate) database: String,
    /// Exchange and queue as log lines show them, the same in every run.
    pub(crate) destination: String,
    /// What makes this run's names its own.
    pub(crate) run: String,
}

impl Site {
    /// The name of exchange and queue at the broker.
    pub(crate) fn queue(&self) -> String {
        format!("{}.{}", self.destination, self.run)
    }

    /// The schema, where the database has those.
    #[cfg(feature = "postgres")]
    pub(crate) fn schema(&self) -> String {
        format!("aftercommit_lab_{}", self.run)
    }

    pub(crate) fn subscription(&self) -> Result<Subscription, ConfigError> {
        Ok(Subscription::new(CONSUMER, self.queue())?.with_binding(self.queue(), EVENT_TYPE))
    }

    pub(crate) fn route(&self) -> Destination {
        Destination::new(self.queue()).with_routing_key(EVENT_TYPE)
    }
}
