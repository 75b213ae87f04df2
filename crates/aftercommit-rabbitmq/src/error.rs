//! lapin's errors in the words of the contracts.

use aftercommit_core::BrokerError;
use lapin::ErrorKind;

pub(crate) const PRODUCT: &str = "rabbitmq";

/// AMQP reply codes that decide something.
pub(crate) mod code {
    pub(crate) const ACCESS_REFUSED: u16 = 403;
    pub(crate) const NOT_FOUND: u16 = 404;
    pub(crate) const PRECONDITION_FAILED: u16 = 406;
    pub(crate) const NOT_ALLOWED: u16 = 530;
}

/// The broker's reply code, if the broker closed the channel or connection.
pub(crate) fn reply_code(error: &lapin::Error) -> Option<u16> {
    match error.kind() {
        ErrorKind::ProtocolError(error) => Some(error.get_id()),
        _ => None,
    }
}

/// What happened, for a person: the broker's own words where it gave some.
pub(crate) fn reason(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        ErrorKind::IOError(error) => error.to_string(),
        _ => error.to_string(),
    }
}

/// Why a connection could not be opened.
pub(crate) fn connecting(address: String, error: lapin::Error) -> BrokerError {
    let reason = reason(&error);
    match reply_code(&error) {
        Some(code::ACCESS_REFUSED | code::NOT_ALLOWED) => {
            BrokerError::Denied { product: PRODUCT, address, reason }
        }
        _ => BrokerError::Unreachable { product: PRODUCT, address, reason, source: Some(Box::new(error)) },
    }
}

/// Why something could not be done with a queue or exchange over an open connection.
pub(crate) fn touching(
    address: &str,
    place: impl FnOnce() -> String,
    action: &'static str,
    error: lapin::Error,
) -> BrokerError {
    let reason = reason(&error);
    match reply_code(&error) {
        Some(code::ACCESS_REFUSED) => {
            BrokerError::Denied { product: PRODUCT, address: address.to_owned(), reason }
        }
        Some(_) if error.is_amqp_soft_error() => {
            BrokerError::Topology { place: place(), reason, source: Some(Box::new(error)) }
        }
        _ => BrokerError::Backend { product: PRODUCT, action, source: Box::new(error) },
    }
}
