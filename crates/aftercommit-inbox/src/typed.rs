//! Handlers that take a decoded body.

use std::marker::PhantomData;

use aftercommit_core::{Failure, Message};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::handler::{Handled, Handler};
use crate::store::InboxStore;

/// A handler that takes the JSON body as a `T`; see [`typed`].
pub struct Typed<T, F> {
    handle: F,
    body: PhantomData<fn() -> T>,
}

impl<T, F> std::fmt::Debug for Typed<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Typed").field("body", &std::any::type_name::<T>()).finish_non_exhaustive()
    }
}

/// Makes a handler of a closure that takes the JSON body decoded as `T`. A body that does not
/// decode is poison and becomes a dead letter before anything is claimed; the handler is not called.
///
/// ```text
/// typed(|db: &mut PgConnection, order: &Order, message| Box::pin(async move { … }))
/// ```
pub const fn typed<C, T, F>(handle: F) -> Typed<T, F>
where
    F: for<'a> Fn(&'a mut C, &'a T, &'a Message) -> BoxFuture<'a, Result<Handled, Failure>>,
{
    Typed { handle, body: PhantomData }
}

/// Decodes a JSON body.
///
/// # Errors
/// Poison, with the place in the body, when the body is absent, empty or not a `T`.
pub fn json<T: DeserializeOwned>(message: &Message) -> Result<T, Failure> {
    let body = message.body.as_deref().ok_or_else(|| Failure::poison("the message has no body"))?;
    if body.is_empty() {
        return Err(Failure::poison("the body is empty"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Failure::poison("the body does not decode").with_source(error))
}

#[async_trait]
impl<S, T, F> Handler<S> for Typed<T, F>
where
    S: InboxStore,
    T: DeserializeOwned + Send + Sync + 'static,
    F: for<'a> Fn(&'a mut S::Connection, &'a T, &'a Message) -> BoxFuture<'a, Result<Handled, Failure>>
        + Send
        + Sync
        + 'static,
{
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        message.decode_once(json::<T>).map(|_| ())
    }

    async fn handle(&self, db: &mut S::Connection, message: &Message) -> Result<Handled, Failure> {
        let body = message.decode_once(json::<T>)?;
        (self.handle)(db, &body, message).await
    }
}
