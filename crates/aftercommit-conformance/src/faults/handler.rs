//! A handler with faults.

use async_trait::async_trait;

use aftercommit_core::{Failure, Message};
use aftercommit_inbox::{Handled, Handler, InboxStore};

use super::script::{Injected, Script, Seam};

/// A handler whose calls go through a [`Script`]. A call that was not made, or whose answer was
/// lost, is a transient failure.
#[derive(Debug)]
pub struct FaultyHandler<H> {
    inner: H,
    script: Script,
}

impl<H> FaultyHandler<H> {
    /// Wraps a handler.
    #[must_use]
    pub const fn new(inner: H, script: Script) -> Self {
        Self { inner, script }
    }
}

#[async_trait]
impl<S: InboxStore, H: Handler<S>> Handler<S> for FaultyHandler<H> {
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        self.inner.decode(message)
    }

    async fn handle(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure> {
        let call = self.inner.handle(db, message);
        let error = |injected: Injected| Failure::transient(injected.to_string());
        self.script.across(Seam::Handle, call, error).await
    }
}
