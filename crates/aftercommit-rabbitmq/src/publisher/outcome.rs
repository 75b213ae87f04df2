//! What the broker's reaction to one publish means.

use aftercommit_core::{Destination, PublishError, Receipt};
use tokio::sync::oneshot;

use crate::error::{code, reason, reply_code};
use crate::wire::Seen;

/// The broker's answer to a publish, before returned messages are looked at.
pub(super) enum Confirm {
    Ack,
    Nack,
    /// The channel is not in confirm mode, which cannot be.
    NotRequested,
}

/// A publish whose future has ended.
pub(super) struct Outcome {
    pub(super) destination: Destination,
    pub(super) nonce: String,
    pub(super) reply: oneshot::Sender<Result<Receipt, PublishError>>,
    pub(super) result: Result<Confirm, lapin::Error>,
}

impl Outcome {
    /// Whether the broker closed the channel while this publish was open.
    pub(super) fn was_open_at_close(&self) -> bool {
        self.result.as_ref().is_err_and(|error| reply_code(error).is_some())
    }

    /// Answers the caller, who may have gone. `alone`: no other publish was open.
    pub(super) fn answer(self, seen: &Seen, alone: bool) {
        let Self { destination, nonce, reply, result } = self;
        let returned = seen.take_returned(&nonce);
        let answer = match result {
            // Said and done, whatever became of the channel afterwards.
            _ if returned => Err(PublishError::Unroutable { destination }),
            Ok(Confirm::Ack) => Ok(Receipt::new(destination, None)),
            Ok(Confirm::Nack) => {
                let reason = "negative confirm: a queue is full or failed".to_owned();
                Err(PublishError::Refused { destination, reason, later: true })
            }
            Ok(Confirm::NotRequested) => {
                let reason = "the channel is not in confirm mode".to_owned();
                Err(PublishError::Unknown { destination, reason, source: None })
            }
            Err(error) => Err(failed(destination, error, alone)),
        };
        // A caller whose deadline has passed does not listen any more.
        let _ = reply.send(answer);
    }
}

fn failed(destination: Destination, error: lapin::Error, alone: bool) -> PublishError {
    let reason = reason(&error);
    match reply_code(&error) {
        Some(code) if alone && error.is_amqp_soft_error() => {
            // 406: a forged user id, a body over the server's limit. The same message fails again.
            PublishError::Refused { destination, reason, later: code != code::PRECONDITION_FAILED }
        }
        _ => PublishError::Unknown { destination, reason, source: Some(Box::new(error)) },
    }
}
