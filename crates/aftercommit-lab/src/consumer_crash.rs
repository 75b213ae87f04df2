//! `consumer-crash`: a consumer dies after its commit and before its confirm; another one drains.

use std::time::Instant;

use crate::card::{Card, Components, ExitCodes};
use crate::order::Order;
use crate::plan::{Crash, CrashAt};
use crate::product;
use crate::program::Component;
use crate::role::{Consume, Method, Part, now, snapshot};
use crate::stage::{Places, Stage};
use crate::tally::Tally;
use crate::{Assertion, Counter, LabError, LogLine, Program, Watch, database};

/// The experiment's name.
pub(crate) const NAME: &str = "consumer-crash";

/// What an experiment is run on.
#[derive(Clone)]
pub struct Experiment {
    /// The program that plays producer and consumers.
    pub program: Program,
    /// URL of the broker.
    pub broker: String,
    /// URL of the database; `sqlite:` for a file of the run's own.
    pub database: String,
    /// Another consumer in the place of the real one.
    pub counter: Option<Counter>,
}

impl std::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URLs: they may have passwords in them.
        f.debug_struct("Experiment").field("counter", &self.counter).finish_non_exhaustive()
    }
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct Report {
    /// Every line, in order.
    pub lines: Vec<LogLine>,
    /// The evidence card, with the figures.
    pub card: Card,
}

struct Seen {
    tally: Tally,
    exit_codes: ExitCodes,
    after_crash: usize,
    rows: Vec<(String, String)>,
    processed: u64,
    depth: u64,
    components: Components,
}

impl Experiment {
    /// Runs `consumer-crash`: three orders; the first consumer ends itself with 137 after the first commit, before its
    /// confirm; the second one drains. Everything that the run made is removed.
    ///
    /// # Errors
    /// [`LabError`] when it could not be run to its end. A figure that is not as expected is no error.
    ///
    /// # Cancel safety
    /// A dropped future ends its processes and leaves queue and tables behind; make `interrupted` ready instead.
    pub async fn consumer_crash(
        &self,
        watch: &dyn Watch,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Report, LabError> {
        let start = Instant::now();
        let places = Places {
            lab: NAME,
            destination: "orders.crash",
            broker: self.broker.clone(),
            database: self.database.clone(),
        };
        let stage = Stage::new(places, self.program.clone(), watch)?;
        let product = stage.site.product.clone();
        let seen = stage.run(async |stage| self.act(stage).await, interrupted).await?;
        let assertions = assertions(&seen);
        let card = Card {
            experiment: NAME,
            product,
            database: database::of_url(&self.database)?,
            counter: self.counter.map(Counter::as_str),
            components: seen.components,
            captured_at: now(),
            duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            exit_codes: seen.exit_codes,
            assertions,
        };
        Ok(Report { lines: seen.tally.lines, card })
    }

    async fn act(&self, stage: &Stage<'_>) -> Result<Seen, LabError> {
        let mut tally = Tally::default();
        let components = self.components(stage).await?;
        let sends = (1..=3).map(Order).collect();
        let producer = stage.publish(Part::Producer { sends, at_once: 1 }, &mut tally).await?;
        let method = self.counter.map_or(Method::Inbox, Counter::method);
        let part = Consume { method, prefetch: 1, crash: None, spared: Vec::new() };
        let crash = Crash { at: CrashAt::BeforeConfirm, nth: 0 };
        let crashed = stage.crash(part.clone(), crash, &mut tally).await?;
        stage.at_rest().await?;
        let after_crash = take_snapshot(stage, &mut tally).await?.len();
        let drained = stage.drain(part, &mut tally).await?;
        let depth = stage.at_rest().await?.ready;
        let rows = take_snapshot(stage, &mut tally).await?;
        let processed = stage.ledger()?.processed().await?;
        let exit_codes = ExitCodes { producer, crashed, drained };
        Ok(Seen { tally, exit_codes, after_crash, rows, processed, depth, components })
    }

    async fn components(&self, stage: &Stage<'_>) -> Result<Components, LabError> {
        let program = Component {
            version: concat!("aftercommit ", env!("CARGO_PKG_VERSION")).to_owned(),
            sha256: Some(self.program.digest()?),
        };
        let broker = Component::server(&stage.site.product, &stage.outside()?.version().await);
        let name = database::of_url(&self.database)?;
        Ok(Components {
            program,
            broker_client: Component::client(product::client(&stage.site.product)),
            broker,
            database_client: Component::client(product::client(name)),
            database: Component::server(name, &stage.ledger()?.version().await?),
        })
    }
}

/// Reads the effects while nobody runs, a line for each.
async fn take_snapshot(stage: &Stage<'_>, tally: &mut Tally) -> Result<Vec<(String, String)>, LabError> {
    let since = Instant::now();
    let rows = stage.ledger()?.effects().await?;
    for (message_id, order) in &rows {
        let line = snapshot(&stage.site, message_id, order, since);
        stage.watch.line(&line);
        tally.add(line);
    }
    Ok(rows)
}

fn assertions(seen: &Seen) -> Vec<Assertion> {
    let Seen { tally, exit_codes, rows, .. } = seen;
    let mut once: Vec<_> = rows.iter().map(|(message_id, _)| message_id).collect();
    once.dedup();
    let number = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
    let count = |figure: usize| i64::try_from(figure).unwrap_or(i64::MAX);
    [
        ("crashExitCode", 137, i64::from(exit_codes.crashed)),
        ("crashAfterBusinessCommit", 1, count(seen.after_crash)),
        ("receivedTotal", 4, number(tally.received)),
        ("redeliveredCount", 1, number(tally.redelivered)),
        ("duplicatesObserved", 1, number(tally.duplicates)),
        ("duplicatesApplied", 0, count(rows.len() - once.len())),
        ("uniqueMessageIds", 3, count(tally.received_ids.len())),
        ("business_rows", 3, count(rows.len())),
        ("processed_rows", 3, number(seen.processed)),
        ("queueDepthAfter", 0, number(seen.depth)),
        ("consumerExitCode", 0, i64::from(exit_codes.drained)),
    ]
    .map(|(name, expected, actual)| Assertion { name, expected, actual })
    .to_vec()
}
