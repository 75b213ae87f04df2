//! One side's run, and two sides taking turns.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::arena::{Arena, Counted};
use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::place::Place;
use crate::product::{self, Product};
use crate::raw::{self, Safety, Shape};

/// Who drains the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Product,
    ProductSetBased,
    Raw(Safety),
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) who: Who,
    pub(crate) shape: Shape,
    pub(crate) messages: u32,
}

/// A side that runs.
pub(crate) enum Started {
    Product(Box<Product>),
    Raw(Box<raw::Loop>),
}

/// What one run showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Messages a second, from the first delivery to the last confirmation.
    pub(crate) rate: f64,
    pub(crate) messages: u32,
    /// Processor time of this process for one message, in microseconds.
    pub(crate) cpu: f64,
    pub(crate) counted: Counted,
}

/// Longer than any run lasts that still moves.
const STALLED: Duration = Duration::from_secs(300);

impl Side {
    pub(crate) async fn declare(&self, arena: &Arena) -> Result<()> {
        match self.who {
            Who::Product | Who::ProductSetBased => product::declare(arena).await,
            Who::Raw(_) => arena.declare().await,
        }
    }

    pub(crate) async fn start(&self, arena: &Arena, meter: &Arc<Meter>) -> Result<Started> {
        let set_based = self.who == Who::ProductSetBased;
        Ok(match self.who {
            Who::Product | Who::ProductSetBased => {
                Started::Product(Box::new(product::start(arena, self.shape, set_based, meter).await?))
            }
            Who::Raw(safety) => {
                let (postgres, amqp) = (arena.postgres(), &arena.place.amqp);
                let raw = raw::start(&postgres, amqp, &arena.name, self.shape, safety, meter).await?;
                Started::Raw(Box::new(raw))
            }
        })
    }

    /// A whole run: fresh queue and schema, fill, drain, count.
    pub(crate) async fn run(&self, place: &Place) -> Result<Run> {
        let mut arena = Arena::open(place).await?;
        self.declare(&arena).await?;
        let (run, more) = self.fill_and_drain(&mut arena).await?;
        arena.close(more).await?;
        Ok(run)
    }

    pub(crate) async fn fill_and_drain(&self, arena: &mut Arena) -> Result<(Run, Option<String>)> {
        arena.fill(self.messages).await?;
        arena.settle().await?;
        let meter = Arc::new(Meter::new(self.messages as usize));
        let started = self.start(arena, &meter).await?;
        let more = started.finish(&meter).await?;
        let counted = arena.verify(self.messages, self.shape.prefetch).await?;
        let (took, cpu) = meter.took().ok_or_else(|| Error::new("the clock did not run"))?;
        let rate = f64::from(self.messages) / took.as_secs_f64();
        let cpu = cpu.as_secs_f64() * 1e6 / f64::from(self.messages);
        Ok((Run { rate, messages: self.messages, cpu, counted }, more))
    }
}

impl Started {
    /// Waits for the last confirmation and ends it.
    pub(crate) async fn finish(self, meter: &Meter) -> Result<Option<String>> {
        let stalled = |_| Error::new(format!("stalled with {} messages confirmed", meter.count()));
        match self {
            Self::Product(product) => {
                timeout(STALLED, meter.done().cancelled()).await.map_err(stalled)?;
                product.stop().await
            }
            // Its workers end with the last message or with the error that stopped them.
            Self::Raw(raw) => {
                timeout(STALLED, raw.stop()).await.map_err(stalled)??;
                Ok(None)
            }
        }
    }
}

/// Product and yardstick take turns, in each round both ways around, so that a drift of the machine
/// hits both.
pub(crate) async fn duel(
    place: &Place,
    rounds: usize,
    title: &str,
    [ours, yardstick]: [Side; 2],
) -> Result<Vec<[Run; 2]>> {
    let mut runs = Vec::with_capacity(rounds);
    for round in 1..=rounds {
        let first = [ours.run(place).await?, yardstick.run(place).await?];
        let [b, a] = [yardstick.run(place).await?, ours.run(place).await?];
        let pair = [first[0].and(a), first[1].and(b)];
        tell(title, round, rounds, pair);
        runs.push(pair);
    }
    Ok(runs)
}

pub(crate) fn tell(title: &str, round: usize, rounds: usize, [a, b]: [Run; 2]) {
    eprintln!(
        "{title}: round {round} of {rounds}: {:.0}/s ÷ {:.0}/s = {:.2}; processor {:.0} µs ÷ {:.0} µs a message",
        a.rate,
        b.rate,
        a.rate / b.rate,
        a.cpu,
        b.cpu
    );
}

impl Run {
    /// Two runs of as many messages as one.
    fn and(self, other: Self) -> Self {
        Self {
            rate: 2.0 / (1.0 / self.rate + 1.0 / other.rate),
            messages: self.messages + other.messages,
            cpu: f64::midpoint(self.cpu, other.cpu),
            counted: Counted {
                commits: self.counted.commits + other.counted.commits,
                wal_bytes: self.counted.wal_bytes + other.counted.wal_bytes,
                left: self.counted.left + other.counted.left,
            },
        }
    }
}
