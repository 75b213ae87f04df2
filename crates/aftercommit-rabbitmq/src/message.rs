//! Messages ↔ AMQP properties and headers. The README says which field travels where.

mod envelope;
mod incoming;
mod outgoing;
mod value;

pub(crate) use incoming::incoming;
pub(crate) use outgoing::{Prepared, Unsendable, prepare};
pub(crate) use value::short;

/// Names of the headers that are ours between publisher and source. They are not shown to handlers.
pub(crate) mod own {
    /// Which publish this was, so that a returned message is matched to it.
    pub(crate) const NONCE: &str = "aftercommit-nonce";
    /// There was no body, which AMQP cannot tell from an empty one.
    pub(crate) const ABSENT_BODY: &str = "aftercommit-absent-body";
    /// The id, where it is not text and has no place in `message_id`.
    pub(crate) const RAW_ID: &str = "aftercommit-raw-message-id";
}

/// Native properties that are kept under these names.
mod native {
    pub(super) const CONTENT_TYPE: &str = "content_type";
    pub(super) const CONTENT_ENCODING: &str = "content_encoding";
    pub(super) const DELIVERY_MODE: &str = "delivery_mode";
    pub(super) const PRIORITY: &str = "priority";
    pub(super) const REPLY_TO: &str = "reply_to";
    pub(super) const TIMESTAMP: &str = "timestamp";
    pub(super) const APP_ID: &str = "app_id";
    pub(super) const CLUSTER_ID: &str = "cluster_id";
}

/// Whether a header commands a broker: resent, it lost or copied messages.
fn is_command(name: &str) -> bool {
    matches!(name, "x-death" | "x-delivery-count" | "CC" | "BCC")
        || name.starts_with("x-first-death-")
        || name.starts_with("x-last-death-")
}

#[cfg(test)]
mod tests;
