//! What differs between databases: opening, what is the run's own, and its removal. All SQL of effects and inbox is
//! one text.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod ledger;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use aftercommit::inbox::ConsumerError;
use aftercommit::{Broker, Message, Running, Subscription};
use aftercommit_conformance::faults::Script;
use async_trait::async_trait;

use crate::LabError;
use crate::role::Journal;
use crate::site::Site;

/// A run's database: the inbox, and the effects, whose table has no unique key: it would hide an inbox that does not
/// work.
#[async_trait]
pub(crate) trait Ledger: Send + Sync {
    /// What the server says it is.
    async fn version(&self) -> Result<String, LabError>;

    /// Makes what is the run's own.
    async fn create(&self) -> Result<(), LabError>;

    /// Removes it. What is not there is removed already.
    async fn remove(&self) -> Result<(), LabError>;

    /// Message id and order of every effect, by message.
    async fn effects(&self) -> Result<Vec<(String, String)>, LabError>;

    /// How many messages the inbox has.
    async fn processed(&self) -> Result<u64, LabError>;

    /// 1 and the failures that are counted.
    async fn attempt(&self, id: &str) -> Result<u64, LabError>;

    /// Starts the real consumer, one message per transaction in one lane.
    async fn start(
        &self,
        broker: Arc<dyn Broker>,
        subscription: Subscription,
        journal: Journal,
        script: Script,
    ) -> Result<Running, ConsumerError>;

    /// One statement, one commit: the effect alone.
    async fn write_effect(&self, message: &Message) -> Result<(), LabError>;

    /// One statement, one commit: the inbox row alone.
    async fn write_record(&self, id: &str) -> Result<(), LabError>;

    /// Whether the inbox has the id.
    async fn is_recorded(&self, id: &str) -> Result<bool, LabError>;

    /// Inbox row and effect in one transaction; `false` when the row was there already.
    async fn write_both(&self, message: &Message) -> Result<bool, LabError>;
}

/// The database that a URL names, and the client that talks to it.
pub(crate) fn of_url(url: &str) -> Result<&'static str, LabError> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let (name, compiled, feature) = match scheme {
        "postgres" | "postgresql" => ("postgres", cfg!(feature = "postgres"), "postgres"),
        "sqlite" => ("sqlite", cfg!(feature = "sqlite"), "sqlite"),
        _ => {
            return Err(LabError::Usage(format!(
                "no database has URLs with the scheme {scheme:?}; known are postgres, postgresql, sqlite"
            )));
        }
    };
    crate::product::compiled(name, compiled, feature)?;
    Ok(name)
}

/// Opens it. Nothing is made yet.
pub(crate) async fn open(site: &Site) -> Result<Arc<dyn Ledger>, LabError> {
    match of_url(&site.database)? {
        #[cfg(feature = "postgres")]
        "postgres" => Ok(Arc::new(postgres::open(site).await?)),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(sqlite::open(site).await?)),
        other => Err(LabError::Usage(format!("the lab does not know the database {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_scheme_is_not_repeated() {
        let text = of_url("secret").unwrap_err().to_string();
        assert!(text.contains("postgres") && !text.contains("secret"), "{text}");
    }
}
