use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::place::Place;
use crate::raw::{Safety, Shape};
use crate::report::{Figure, Row};
use crate::rounds::{Run, Side, Who, duel, tell};

const CONNECTIONS: usize = 4;
const BATCH: usize = 100;

pub(super) fn shape(options: &Options, connections: usize, batch: usize) -> Result<Shape> {
    let prefetch = options.prefetch.map_or_else(|| u16::try_from(connections * batch * 2), Ok);
    let prefetch = prefetch.map_err(|_| Error::new("prefetch is too large"))?;
    Ok(Shape { connections, prefetch, batch })
}

/// One message per transaction, 16 in flight; and what the last statement and the limits cost.
pub(super) async fn one(place: &Place, options: &Options) -> Result<Vec<Row>> {
    let shape = shape(options, 16, 1)?;
    let side = |who| Side { who, shape, messages: options.messages };
    let title = "one message per transaction, 16 in flight ÷ raw";
    let runs = duel(place, options.rounds, title, [Who::Product, Who::Raw(Safety::Full)].map(side)).await?;
    let first = row(title, &runs, Some(0.9), Some(0.95));
    let title = "one message per transaction, 16 in flight ÷ raw without proof and limits";
    let runs = duel(place, options.rounds, title, [Who::Product, Who::Raw(Safety::None)].map(side)).await?;
    Ok(vec![first, row(title, &runs, None, None)])
}

/// Batches with a handler per message, against one message per transaction at as many connections.
pub(super) async fn batch(place: &Place, options: &Options) -> Result<Row> {
    let shape = shape(options, CONNECTIONS, BATCH)?;
    let ours = Side { who: Who::Product, shape, messages: options.messages * 3 };
    let single = Shape { batch: 1, ..shape };
    let raw = Side { who: Who::Raw(Safety::Full), shape: single, messages: options.messages };
    let title = "batches of 100, handler per message, 4 connections ÷ raw";
    let runs = duel(place, options.rounds, title, [ours, raw]).await?;
    Ok(row(title, &runs, Some(2.5), Some(3.5)))
}

/// Batches with a handler per batch, against the same by hand.
pub(super) async fn set(place: &Place, options: &Options) -> Result<Row> {
    let shape = shape(options, CONNECTIONS, BATCH)?;
    let side = |who| Side { who, shape, messages: options.messages * 5 };
    let title = "batches of 100, handler per batch, 4 connections ÷ raw-batch";
    let runs =
        duel(place, options.rounds, title, [Who::ProductSetBased, Who::Raw(Safety::Full)].map(side)).await?;
    Ok(row(title, &runs, None, Some(0.85)))
}

/// The same messages again, against the first time.
pub(super) async fn duplicates(place: &Place, options: &Options) -> Result<Row> {
    let title = "batches of 100, all duplicates ÷ all fresh, 4 connections";
    let shape = shape(options, CONNECTIONS, BATCH)?;
    let side = Side { who: Who::Product, shape, messages: options.messages * 3 };
    let mut runs = Vec::with_capacity(options.rounds);
    for round in 1..=options.rounds {
        let mut arena = Arena::open(place).await?;
        side.declare(&arena).await?;
        let (fresh, _) = side.fill_and_drain(&mut arena).await?;
        let (again, more) = side.fill_and_drain(&mut arena).await?;
        arena.close(more).await?;
        tell(title, round, options.rounds, [again, fresh]);
        runs.push([again, fresh]);
    }
    Ok(row(title, &runs, None, Some(1.0)))
}

/// Twice the connections, against half of them.
pub(super) async fn growth(place: &Place, options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for connections in [2, 4, 8] {
        let side = |connections| {
            let shape = shape(options, connections, BATCH)?;
            Ok::<_, Error>(Side { who: Who::Product, shape, messages: options.messages * 2 })
        };
        let title =
            format!("batches of 100, handler per message: {connections} connections ÷ {}", connections / 2);
        let sides = [side(connections)?, side(connections / 2)?];
        let runs = duel(place, options.rounds, &title, sides).await?;
        rows.push(row(&title, &runs, None, Some(1.0)));
    }
    Ok(rows)
}

fn row(title: &str, runs: &[[Run; 2]], bar: Option<f64>, goal: Option<f64>) -> Row {
    let rate = |side: usize| format!("{:.0}/s", Figure::of(runs.iter().map(|pair| pair[side].rate)).median);
    Row {
        title: title.to_owned(),
        ours: rate(0),
        yardstick: rate(1),
        ratio: Some(Figure::of(runs.iter().map(|[ours, yardstick]| ours.rate / yardstick.rate))),
        bar,
        goal,
        at_most: false,
        note: format!("a message costs ours {}; yardstick {}", costs(runs, 0), costs(runs, 1)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes and commits of one run are far below 2^52")]
fn costs(runs: &[[Run; 2]], side: usize) -> String {
    let per_message = |count: fn(&Run) -> i64| {
        let values = runs.iter().map(|pair| count(&pair[side]) as f64 / f64::from(pair[side].messages));
        Figure::of(values).median
    };
    let rows = runs.last().map_or(0, |pair| pair[side].messages);
    let (commits, wal) = (per_message(|run| run.counted.commits), per_message(|run| run.counted.wal_bytes));
    let cpu = Figure::of(runs.iter().map(|pair| pair[side].cpu)).median;
    let left: u32 = runs.iter().map(|pair| pair[side].counted.left).sum();
    let left = if left == 0 { String::new() } else { format!(", {left} confirmations lost at the end") };
    format!(
        "{commits:.3} commits, {wal:.0} bytes of WAL, {cpu:.0} µs of this process ({rows} rows each round{left})"
    )
}
