//! One handler per event type and schema version.

use std::collections::HashMap;

use aftercommit_core::{Failure, Message};
use async_trait::async_trait;

use crate::handler::{Handled, Handler};
use crate::store::InboxStore;

/// Routes messages by (type, version). What nobody handles is poison: it becomes a dead letter
/// before anything is claimed.
pub struct Router<S: InboxStore> {
    // By type, then by version: a lookup allocates nothing.
    routes: HashMap<String, HashMap<String, Box<dyn Handler<S>>>>,
}

impl<S: InboxStore> Router<S> {
    /// A router without routes.
    #[must_use]
    pub fn new() -> Self {
        Self { routes: HashMap::new() }
    }

    /// Adds the handler of one type in one version; the version is compared in plain decimal. A second handler for the same pair replaces the
    /// first.
    #[must_use]
    pub fn on(mut self, event_type: impl Into<String>, version: u32, handler: impl Handler<S>) -> Self {
        self.routes.entry(event_type.into()).or_default().insert(version.to_string(), Box::new(handler));
        self
    }

    fn route(&self, message: &Message) -> Result<&dyn Handler<S>, Failure> {
        let event_type =
            message.event_type.as_deref().ok_or_else(|| Failure::poison("the message has no type"))?;
        let versions = self
            .routes
            .get(event_type)
            .ok_or_else(|| Failure::poison(format!("no handler for type {event_type:?}")))?;
        let version = message.schema_version.as_deref().ok_or_else(|| {
            Failure::poison(format!("the message of type {event_type:?} has no schema version"))
        })?;
        versions.get(version).map(Box::as_ref).ok_or_else(|| {
            Failure::poison(format!("no handler for type {event_type:?} in version {version:?}"))
        })
    }
}

impl<S: InboxStore> Default for Router<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: InboxStore> std::fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let routes = self.routes.iter().map(|(event_type, versions)| (event_type, versions.keys()));
        f.debug_map().entries(routes.map(|(t, v)| (t, v.collect::<Vec<_>>()))).finish()
    }
}

#[async_trait]
impl<S: InboxStore> Handler<S> for Router<S> {
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        self.route(message)?.decode(message)
    }

    async fn handle(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure> {
        self.route(message)?.handle(db, message).await
    }
}
