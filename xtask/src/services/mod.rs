//! Real servers, started natively: shared ones that stay up, and private nodes for one test.

mod place;
pub mod postgres;
mod private;
pub mod rabbitmq;
mod shared;

pub use place::Place;
pub use shared::{ALL, Condition, Service, down, named, status, up, variables};
