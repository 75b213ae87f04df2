//! The cells of the table.

mod latency;
mod memory;
mod throughput;

use crate::error::Result;
use crate::options::{Cell, Options};
use crate::place::Place;
use crate::report::Report;

/// Measures every cell asked for, telling progress on standard error.
///
/// # Errors
/// When a server cannot be reached, is set up so that figures mean nothing, or a run loses or
/// doubles a message.
///
/// # Cancel safety
/// A dropped future leaves schemas and queues named `bench_…` behind.
pub async fn run(place: &Place, options: &Options) -> Result<Report> {
    let settings = place.settings().await?;
    let mut rows = Vec::new();
    for cell in &options.cells {
        match cell {
            Cell::One => rows.extend(throughput::one(place, options).await?),
            Cell::Batch => rows.push(throughput::batch(place, options).await?),
            Cell::Set => rows.push(throughput::set(place, options).await?),
            Cell::Duplicates => rows.push(throughput::duplicates(place, options).await?),
            Cell::Growth => rows.extend(throughput::growth(place, options).await?),
            Cell::Latency => rows.extend(latency::slow_stream(place, options).await?),
            Cell::Memory => rows.push(memory::waiting(place, options).await?),
        }
    }
    let date = time::OffsetDateTime::now_utc().date().to_string();
    Ok(Report { date, rounds: options.rounds, settings, rows })
}
