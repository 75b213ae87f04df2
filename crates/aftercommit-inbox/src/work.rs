//! One call of the application's code, bounded in time and with its panics caught.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{Failure, Message};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::handler::{BatchHandler, Handled, Handler};
use crate::health::Busy;
use crate::job::panic_text;
use crate::store::InboxStore;

/// The application's code in either form.
pub(crate) enum Work<S: InboxStore> {
    Single(Arc<dyn Handler<S>>),
    Batch(Arc<dyn BatchHandler<S>>),
}

/// How a call did not succeed.
pub(crate) enum Broken {
    /// The handler said so; the connection is in a known state. The index is of the message that
    /// failed, where that is known.
    Failed { index: Option<usize>, failure: Failure },
    /// It panicked or outlived its deadline in the middle of a statement, perhaps: the connection
    /// is in an unknown state and must be closed.
    Cut { index: Option<usize>, error: String },
}

impl<S: InboxStore> Work<S> {
    pub(crate) fn decode(&self, message: &Message) -> Result<(), Failure> {
        match self {
            Self::Single(handler) => handler.decode(message),
            Self::Batch(handler) => handler.decode(message),
        }
    }

    /// Whether one call takes many messages, so that a failing call is halved.
    pub(crate) const fn is_batch(&self) -> bool {
        matches!(self, Self::Batch(_))
    }

    /// Handles all messages, in order, and answers for each.
    pub(crate) async fn call(
        &self,
        db: &mut S::Connection,
        messages: &[&Message],
        deadline: Option<Duration>,
        busy: &Busy,
    ) -> Result<Vec<Handled>, Broken> {
        match self {
            Self::Batch(handler) => {
                busy.touch();
                let handled = bounded(handler.handle(db, messages), deadline, None).await?;
                if handled.len() == messages.len() {
                    return Ok(handled);
                }
                let failure = Failure::transient(format!(
                    "the batch handler answered for {} of {} messages",
                    handled.len(),
                    messages.len()
                ));
                Err(Broken::Failed { index: None, failure })
            }
            Self::Single(handler) => {
                let mut handled = Vec::with_capacity(messages.len());
                for (index, message) in messages.iter().enumerate() {
                    busy.touch();
                    handled.push(bounded(handler.handle(db, message), deadline, Some(index)).await?);
                }
                Ok(handled)
            }
        }
    }
}

/// The deadline wraps the handler's call and nothing else: whoever sees it pass closes the
/// connection, so no transaction is ever cut off in an unknown state and used again.
async fn bounded<T>(
    call: BoxFuture<'_, Result<T, Failure>>,
    deadline: Option<Duration>,
    index: Option<usize>,
) -> Result<T, Broken> {
    let caught = AssertUnwindSafe(call).catch_unwind();
    let ended = match deadline {
        Some(limit) => tokio::time::timeout(limit, caught).await.map_err(|_| Broken::Cut {
            index,
            error: format!("the handler took longer than its deadline of {limit:?}"),
        })?,
        None => caught.await,
    };
    match ended {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(Broken::Failed { index, failure }),
        Err(panic) => {
            Err(Broken::Cut { index, error: format!("the handler panicked: {}", panic_text(&*panic)) })
        }
    }
}
