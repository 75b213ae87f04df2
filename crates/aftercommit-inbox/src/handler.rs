//! What the application writes: one message or many, inside the inbox's transaction.

use aftercommit_core::{Failure, Message};
use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::store::InboxStore;

/// What a handler did. Both are committed and confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Handled {
    /// The message had its effect.
    Applied,
    /// The business says no ("not enough stock"). The handler wrote that down itself; it is
    /// committed like a yes.
    Rejected,
}

/// Handles one message.
///
/// The handler sees no acker and cannot confirm: it writes with `db`, which is already inside the
/// transaction that holds the claim, and what it wrote commits with the claim or not at all. It may
/// use any code of its database driver; nested `begin` makes savepoints. It must not end the
/// transaction itself: that is noticed and counts as a failure.
///
/// It runs again after every failure, deadlock or crash, so everything outside `db` (HTTP, mail,
/// another database) happens at least once and needs the message id as its own idempotency key.
#[async_trait]
pub trait Handler<S: InboxStore>: Send + Sync + 'static {
    /// Looks at a message before anything is claimed. A failure here costs no transaction and
    /// leaves the batch's other messages alone. The typed layer decodes the body here, the router
    /// looks for a handler.
    ///
    /// # Errors
    /// [`Failure`], usually poison.
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        let _ = message;
        Ok(())
    }

    /// Handles a message.
    ///
    /// # Errors
    /// [`Failure`]: nothing of this call is committed.
    ///
    /// # Cancel safety
    /// The call may be dropped at its deadline; its connection is closed then, so that nothing of
    /// it is committed.
    async fn handle(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure>;
}

/// Handles many messages with one call, so that SQL can be set-based.
#[async_trait]
pub trait BatchHandler<S: InboxStore>: Send + Sync + 'static {
    /// As [`Handler::decode`], for each message.
    ///
    /// # Errors
    /// As [`Handler::decode`].
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        let _ = message;
        Ok(())
    }

    /// Handles messages, at least one, each id once, and answers for each in the same order.
    ///
    /// # Errors
    /// [`Failure`] for all of them: the call is repeated on halves, in the end on single messages,
    /// so that only the failing ones pay.
    ///
    /// # Cancel safety
    /// As [`Handler::handle`].
    async fn handle(&self, db: &mut S::Connection, messages: &[&Message]) -> Result<Vec<Handled>, Failure>;
}

/// A handler made of a closure; see [`handler_fn`].
#[derive(Clone, Copy, Debug)]
pub struct HandlerFn<F>(F);

/// Makes a handler of a closure that returns a boxed future:
///
/// ```text
/// handler_fn(|db: &mut PgConnection, message| Box::pin(async move { … Ok(Handled::Applied) }))
/// ```
pub const fn handler_fn<C, F>(f: F) -> HandlerFn<F>
where
    F: for<'a> Fn(&'a mut C, &'a Message) -> BoxFuture<'a, Result<Handled, Failure>>,
{
    HandlerFn(f)
}

#[async_trait]
impl<S, F> Handler<S> for HandlerFn<F>
where
    S: InboxStore,
    F: for<'a> Fn(&'a mut S::Connection, &'a Message) -> BoxFuture<'a, Result<Handled, Failure>>
        + Send
        + Sync
        + 'static,
{
    async fn handle(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure> {
        (self.0)(db, message).await
    }
}

/// A batch handler made of a closure; see [`batch_fn`].
#[derive(Clone, Copy, Debug)]
pub struct BatchFn<F>(F);

/// Makes a batch handler of a closure that returns a boxed future.
pub const fn batch_fn<C, F>(f: F) -> BatchFn<F>
where
    F: for<'a> Fn(&'a mut C, &'a [&'a Message]) -> BoxFuture<'a, Result<Vec<Handled>, Failure>>,
{
    BatchFn(f)
}

#[async_trait]
impl<S, F> BatchHandler<S> for BatchFn<F>
where
    S: InboxStore,
    F: for<'a> Fn(&'a mut S::Connection, &'a [&'a Message]) -> BoxFuture<'a, Result<Vec<Handled>, Failure>>
        + Send
        + Sync
        + 'static,
{
    async fn handle(&self, db: &mut S::Connection, messages: &[&Message]) -> Result<Vec<Handled>, Failure> {
        (self.0)(db, messages).await
    }
}
