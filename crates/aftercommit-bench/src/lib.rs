//! Benchmarks of aftercommit against hand-written loops.
//!
//! Every figure is a **ratio measured in one run**: the product and its yardstick take turns on the
//! same servers, round after round, and the median of the rounds' ratios counts. The yardsticks
//! ([`raw`]) use the bare clients and none of our crates.

mod arena;
mod cells;
mod error;
mod meter;
mod options;
mod place;
mod process;
mod product;
pub mod raw;
mod report;
mod rounds;
mod watched;

pub use cells::run;
pub use error::{Error, Result};
pub use meter::Meter;
pub use options::{Cell, Options, USAGE};
pub use place::Place;
pub use report::{Figure, Report, Row, Standing};
