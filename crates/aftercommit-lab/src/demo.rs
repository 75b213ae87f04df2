//! The demonstration: a thousand orders through four crashes.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;

use crate::plan::twice;
use crate::plan::{Crash, CrashAt, Plan};
use crate::role::{Consume, Method, Part};
use crate::stage::{Places, Stage};
use crate::tally::Tally;
use crate::{LabError, Program, Watch};

/// What the demonstration is run on.
#[derive(Clone)]
pub struct Demo {
    /// The program that plays producer and consumers.
    pub program: Program,
    /// URL of the broker.
    pub broker: String,
    /// URL of the database; `sqlite:` for a file of the run's own.
    pub database: String,
    /// Decides which orders are sent twice, in which order all are sent, and where consumers die.
    pub seed: u64,
    /// Breaks the promise on purpose: tells the broker before the commit.
    pub confirm_first: bool,
}

impl std::fmt::Debug for Demo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URLs: they may have passwords in them.
        f.debug_struct("Demo").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// How many messages the broker confirmed to the producer.
    #[serde(rename = "publishedTotal")]
    pub published_total: u64,
    /// How many ids they have.
    #[serde(rename = "uniqueMessageIds")]
    pub unique_message_ids: u64,
    /// How many deliveries the consumers got.
    #[serde(rename = "receivedTotal")]
    pub received_total: u64,
    /// How many of them were not the first of their message.
    #[serde(rename = "redeliveredCount")]
    pub redelivered_count: u64,
    /// How many deliveries the inbox knew.
    #[serde(rename = "duplicatesObserved")]
    pub duplicates_observed: u64,
    /// How many effects are there a second time.
    #[serde(rename = "duplicatesApplied")]
    pub duplicates_applied: u64,
    /// How many effects are there.
    pub business_rows: u64,
    /// How many ids have no effect.
    pub lost: u64,
    /// How many messages are left in the queue.
    #[serde(rename = "queueDepthAfter")]
    pub queue_depth_after: u64,
    /// How many consumers died with 137.
    pub crashes: u64,
    /// What decided all that.
    pub seed: u64,
    /// How long it took, in milliseconds.
    #[serde(rename = "durationMs")]
    pub duration_ms: u64,
    /// The broker's product.
    pub product: String,
}

impl Figures {
    /// Whether nothing is lost and nothing happened twice.
    #[must_use]
    pub fn promise_held(&self) -> bool {
        self.lost == 0
            && self.duplicates_applied == 0
            && self.business_rows == self.unique_message_ids
            && self.queue_depth_after == 0
    }

    /// The same in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        if self.promise_held() {
            return "the promise held: nothing lost, nothing applied twice".to_owned();
        }
        format!(
            "the promise is broken: {} lost, {} applied twice, {} left in the queue",
            self.lost, self.duplicates_applied, self.queue_depth_after
        )
    }
}

impl Demo {
    /// Publishes, lets consumers die, drains, and looks. Everything that the run made is removed.
    ///
    /// # Errors
    /// [`LabError`] when it could not be run to its end. A broken promise is no error.
    ///
    /// # Cancel safety
    /// A dropped future ends its processes and leaves queue and tables behind; make `interrupted` ready instead.
    pub async fn run(
        &self,
        watch: &dyn Watch,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Figures, LabError> {
        let places = Places {
            lab: "demo",
            destination: "orders.demo",
            broker: self.broker.clone(),
            database: self.database.clone(),
        };
        let stage = Stage::new(places, self.program.clone(), watch)?;
        stage.run(async |stage| self.act(stage).await, interrupted).await
    }

    async fn act(&self, stage: &Stage<'_>) -> Result<Figures, LabError> {
        let start = Instant::now();
        let mut tally = Tally::default();
        let Plan { sends, crashes } = Plan::of_seed(self.seed);
        let spared = twice(&sends);
        let (product, messages) = (&stage.site.product, sends.len());
        stage.watch.step(&format!("publishing {messages} messages to {product}"));
        stage.publish(Part::Producer { sends, at_once: 50 }, &mut tally).await?;
        let twice = tally.published - length(tally.published_ids.len());
        stage.watch.step(&format!("published {}, {twice} of them for the second time", tally.published));
        let method = if self.confirm_first { Method::ConfirmFirst } else { Method::Inbox };
        let part = Consume { method, prefetch: 10, crash: None, spared };
        for (number, crash) in crashes.iter().enumerate() {
            let code = stage.crash(part.clone(), *crash, &mut tally).await?;
            let at = self.place(*crash);
            stage.watch.step(&format!("crash {}: {at}, exit code {code}; started again", number + 1));
        }
        stage.drain(part, &mut tally).await?;
        let depth = stage.at_rest().await?.ready;
        stage.watch.step(&format!("drained: {} deliveries in all", tally.received));
        let rows = stage.ledger()?.effects().await?;
        let with_effect: BTreeSet<&String> = rows.iter().map(|(message_id, _)| message_id).collect();
        let lost = tally.published_ids.iter().filter(|id| !with_effect.contains(id)).count();
        Ok(Figures {
            published_total: tally.published,
            unique_message_ids: length(tally.published_ids.len()),
            received_total: tally.received,
            redelivered_count: tally.redelivered,
            duplicates_observed: tally.duplicates,
            duplicates_applied: length(rows.len() - with_effect.len()),
            business_rows: length(rows.len()),
            lost: length(lost),
            queue_depth_after: depth,
            crashes: length(crashes.len()),
            seed: self.seed,
            duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            product: stage.site.product.clone(),
        })
    }

    const fn place(&self, crash: Crash) -> &'static str {
        match (self.confirm_first, crash.at) {
            (true, _) => "between confirm and commit",
            (false, CrashAt::BeforeConfirm) => "between commit and confirm",
            (false, CrashAt::InHandler) => "inside the handler",
        }
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
