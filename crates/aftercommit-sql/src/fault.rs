//! Errors of the driver, whichever database it talks to.

use std::error::Error;

use aftercommit_inbox::Fault;

/// What the driver itself says, without the database's codes.
pub(crate) fn of_driver(error: &sqlx::Error) -> Option<Fault> {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Some(Fault::Unavailable),
        // Not `Protocol`: a handler gets it for a statement with too many arguments, and a message
        // that can never be handled must not stop all the others.
        _ => None,
    }
}

/// The first answer of `judge` along an error's chain of sources.
pub(crate) fn along(
    error: &(dyn Error + 'static),
    judge: impl Fn(&sqlx::Error) -> Option<Fault>,
) -> Option<Fault> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(fault) = error.downcast_ref::<sqlx::Error>().and_then(&judge) {
            return Some(fault);
        }
        next = error.source();
    }
    None
}
