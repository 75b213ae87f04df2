use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::throughput::shape;
use crate::arena::{Arena, clock};
use crate::error::Result;
use crate::meter::Meter;
use crate::options::Options;
use crate::place::Place;
use crate::raw::Safety;
use crate::report::{Figure, Row};
use crate::rounds::{Side, Who};

const A_SECOND: u32 = 100;
const SECONDS: u32 = 10;
const TITLE: &str = "100 messages a second, from publish to confirmation, ours with its defaults ÷ raw";

/// Median and 99th percentile of one run, in milliseconds.
type Percentiles = [f64; 2];

/// A stream that leaves everybody idle most of the time: does batching add a wait?
pub(super) async fn slow_stream(place: &Place, options: &Options) -> Result<Vec<Row>> {
    let messages = A_SECOND * SECONDS;
    let ours = Side { who: Who::Product, shape: shape(options, 4, 50)?, messages };
    let raw = Side { who: Who::Raw(Safety::Full), shape: shape(options, 4, 1)?, messages };
    let mut runs = Vec::with_capacity(options.rounds);
    for round in 0..options.rounds {
        let pair = if round % 2 == 0 {
            let first = run(place, ours).await?;
            [first, run(place, raw).await?]
        } else {
            let first = run(place, raw).await?;
            [run(place, ours).await?, first]
        };
        let [[a50, a99], [b50, b99]] = pair;
        eprintln!(
            "{TITLE}: round {} of {}: p50 {a50:.2} ms ÷ {b50:.2} ms, p99 {a99:.2} ms ÷ {b99:.2} ms",
            round + 1,
            options.rounds
        );
        runs.push(pair);
    }
    Ok(vec![row("p50", &runs, 0), row("p99", &runs, 1)])
}

async fn run(place: &Place, side: Side) -> Result<Percentiles> {
    let mut arena = Arena::open(place).await?;
    side.declare(&arena).await?;
    arena.settle().await?;
    let meter = Arc::new(Meter::with_moments(side.messages as usize));
    let started = side.start(&arena, &meter).await?;
    let mut ticks = interval(Duration::from_secs(1) / A_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..side.messages {
        ticks.tick().await;
        arena.publish(number).await?;
    }
    let more = started.finish(&meter).await?;
    arena.verify(side.messages, side.shape.prefetch).await?;
    arena.close(more).await?;
    // The first ones prepare statements and open connections.
    let mut waits: Vec<u64> = meter
        .moments()
        .into_iter()
        .skip(50)
        .map(|(sent, confirmed)| clock(confirmed).saturating_sub(sent))
        .collect();
    waits.sort_unstable();
    Ok([percentile(&waits, 50), percentile(&waits, 99)])
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of some seconds are below 2^52")]
fn percentile(sorted: &[u64], percent: usize) -> f64 {
    sorted.get(sorted.len() * percent / 100).map_or(f64::NAN, |nanos| *nanos as f64 / 1e6)
}

fn row(name: &str, runs: &[[Percentiles; 2]], index: usize) -> Row {
    let side =
        |side: usize| format!("{:.2} ms", Figure::of(runs.iter().map(|pair| pair[side][index])).median);
    Row {
        title: format!("{TITLE}, {name}"),
        ours: side(0),
        yardstick: side(1),
        ratio: Some(Figure::of(runs.iter().map(|[ours, raw]| ours[index] / raw[index]))),
        bar: None,
        goal: Some(1.1),
        at_most: true,
        note: String::new(),
    }
}
