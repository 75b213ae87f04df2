//! The contracts of aftercommit.
//!
//! One promise stands behind every trait here: **the business write and the record that a message
//! was handled commit in one database transaction, and only then is the broker told.** A product
//! crate implements [`Broker`], [`Source`], [`Acker`] and [`Publisher`]; the consumer core drives
//! them; the conformance suites hold every implementation to what is written on the traits.
//!
//! This crate knows no broker client, no database and no async runtime.
//!
//! | module | what it says |
//! |---|---|
//! | [`message`], [`headers`] | the envelope: what travels, with its types kept |
//! | [`identity`] | who handled what: consumer name, message id, and where the id comes from |
//! | [`delivery`], [`acker`] | one message handed out, and the one right to settle it |
//! | [`source`], [`publisher`], [`broker`] | what a product must do, and what it must never do |
//! | [`failure`], [`retry`], [`dead_letter`] | what happens when handling does not succeed |
//! | [`capabilities`], [`health`] | what a product can promise, and whether it works right now |

pub mod acker;
pub mod broker;
pub mod capabilities;
mod chain;
pub mod dead_letter;
pub mod delivery;
pub mod failure;
pub mod headers;
pub mod health;
pub mod identity;
pub mod message;
pub mod publisher;
pub mod retry;
pub mod source;
pub mod subscription;

pub use acker::{Acker, Redelivery, SettleError, Settled};
pub use broker::{Broker, BrokerError, Finding, Severity};
pub use capabilities::{Capabilities, Delay, Order};
pub use chain::chain;
pub use dead_letter::{Detail, Diagnostics};
pub use delivery::{Batch, Delivery, DeliveryId, Redelivered};
pub use failure::{Failure, FailureClass};
pub use headers::{HeaderValue, Headers};
pub use health::Signal;
pub use identity::{ConsumerName, IdError, IdPolicy, IdSource, MessageId, MissingId};
pub use message::{Message, Origin};
pub use publisher::{Destination, Outgoing, PublishError, Publisher, Receipt};
pub use retry::{Next, RetryPolicy};
pub use source::{Source, SourceError};
pub use subscription::{Binding, ConfigError, Subscription};

/// An error of a client library, kept as a source and never part of a signature.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
