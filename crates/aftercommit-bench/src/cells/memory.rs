use std::sync::Arc;
use std::time::Duration;

use super::throughput::shape;
use crate::arena::Arena;
use crate::error::Result;
use crate::meter::Meter;
use crate::options::Options;
use crate::place::Place;
use crate::process::resident;
use crate::report::{Figure, Row};
use crate::rounds::{Side, Who};

/// Memory of this process while many messages wait and pass.
pub(super) async fn waiting(place: &Place, options: &Options) -> Result<Row> {
    let messages = options.memory_messages;
    let side = Side { who: Who::Product, shape: shape(options, 4, 100)?, messages };
    let title = format!("memory while {messages} messages wait and pass: last tenth ÷ first tenth");
    eprintln!("{title}");
    let mut arena = Arena::open(place).await?;
    side.declare(&arena).await?;
    arena.fill(messages).await?;
    arena.settle().await?;
    let before = resident()?;
    let meter = Arc::new(Meter::new(messages as usize));
    let started = side.start(&arena, &meter).await?;
    let samples = tokio::spawn(sample(Arc::clone(&meter), messages as usize));
    let more = started.finish(&meter).await?;
    let samples = samples.await??;
    arena.verify(messages, side.shape.prefetch).await?;
    arena.close(more).await?;
    let tenth = (samples.len() / 10).max(1);
    let (first, last) = (
        Figure::of(samples.iter().take(tenth).copied()),
        Figure::of(samples.iter().rev().take(tenth).copied()),
    );
    let all = Figure::of(samples.iter().copied());
    Ok(Row {
        title,
        ours: format!("{:.0} MiB", last.median),
        yardstick: format!("{:.0} MiB", first.median),
        ratio: Some(Figure::of([last.median / first.median])),
        bar: None,
        goal: Some(1.1),
        at_most: true,
        note: format!(
            "{before:.0} MiB before the start, {:.0} to {:.0} MiB while running; prefetch {} × 200 bytes",
            all.least, all.most, side.shape.prefetch
        ),
    })
}

async fn sample(meter: Arc<Meter>, messages: usize) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    while meter.count() < messages {
        tokio::time::sleep(Duration::from_millis(50)).await;
        samples.push(resident()?);
    }
    Ok(samples)
}
