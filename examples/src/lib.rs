//! What the examples share: one story, the same on every product and database.
//!
//! `order-service` publishes `order.created` to the exchange `orders.events`; `inventory-service` reads its own
//! queue, takes one item per order out of the stock and writes a reservation, or a rejection when the stock is
//! used up. Which broker and which database is a matter of two URLs.

mod args;
mod database;
mod log;
mod order;
mod story;
mod warehouse;

pub use aftercommit::core::BoxError;
pub use args::Args;
pub use database::Database;
pub use log::{Counters, exit_code, log_to_stderr};
pub use order::{EVENTS, OrderCreated, subscription};
pub use story::{Figures, Story, new_run, publish};
pub use warehouse::{Rows, Warehouse};
