//! **Whatever the broker: the business write and the record that a message was handled commit in
//! one database transaction, and only then is the broker told.** A crash anywhere leaves a
//! redelivery, never a loss, and inside the database never a second effect.
//!
//! This crate re-exports the parts behind features; none is on by default, and a feature compiles
//! no client but its own.
//!
//! | feature | what it brings |
//! |---|---|
//! | `rabbitmq` | [`rabbitmq`](mod@rabbitmq): RabbitMQ, on lapin |
//! | `sqlqueue` | [`sqlqueue`](mod@sqlqueue): a durable queue in an SQLite file, for several processes on one machine |
//! | `memory` | [`memory`](mod@memory): the reference broker, in memory; by URL it lives in real time |
//! | `postgres` | [`sql::PgInbox`]: the inbox in PostgreSQL, on sqlx |
//! | `postgres-tls` | TLS to PostgreSQL, by rustls with ring and the system's certificates |
//! | `sqlite` | [`sql::SqliteInbox`]: the inbox in an SQLite file, on sqlx |
//!
//! Start at [`Consumer`]. What is promised and what is not stands in the book's `guarantees.md`.
#![cfg_attr(
    not(all(
        feature = "rabbitmq",
        feature = "sqlqueue",
        feature = "memory",
        feature = "postgres",
        feature = "sqlite"
    )),
    allow(rustdoc::broken_intra_doc_links)
)]

mod connect;

pub use aftercommit_core as core;
pub use aftercommit_inbox as inbox;
#[cfg(feature = "memory")]
pub use aftercommit_memory as memory;
#[cfg(feature = "rabbitmq")]
pub use aftercommit_rabbitmq as rabbitmq;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use aftercommit_sql as sql;
#[cfg(feature = "sqlqueue")]
pub use aftercommit_sqlqueue as sqlqueue;

pub use aftercommit_core::{
    Broker, Destination, Failure, FailureClass, IdPolicy, IdSource, Message, MissingId, Outgoing, Publisher,
    RetryPolicy, Subscription,
};
pub use aftercommit_inbox::{
    BatchHandler, Consumer, ConsumerError, Handled, Handler, Health, Outcome, Router, Running, batch_fn,
    handler_fn, shutdown_signal, typed,
};
pub use connect::{ConnectError, PRODUCTS, Product, connect};
