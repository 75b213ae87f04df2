//! The evidence card: what was run on what, when, and what it showed.

mod text;

use serde::Serialize;

use crate::Assertion;
use crate::program::Component;

/// What an experiment leaves for a reader who was not there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Card {
    /// The experiment's name.
    pub experiment: &'static str,
    /// The broker's product.
    pub product: String,
    /// The database.
    pub database: &'static str,
    /// The counter-experiment, if it was one.
    pub counter: Option<&'static str>,
    /// Versions and digests.
    pub components: Components,
    /// When the run ended (RFC 3339, UTC).
    pub captured_at: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How its processes ended.
    pub exit_codes: ExitCodes,
    /// The figures and what they must be.
    pub assertions: Vec<Assertion>,
}

/// Versions and digests of everything that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Components {
    /// This program.
    pub program: Component,
    /// The client library of the broker.
    pub broker_client: Component,
    /// The broker.
    pub broker: Component,
    /// The client library of the database.
    pub database_client: Component,
    /// The database.
    pub database: Component,
}

/// How the processes of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExitCodes {
    /// The producer.
    pub producer: i32,
    /// The consumer that was to die.
    pub crashed: i32,
    /// The consumer that drained the queue, the last one if there were several.
    pub drained: i32,
}

/// What a run amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every figure is as expected.
    Held,
    /// A figure is not.
    Broken,
    /// A figure is not, and that was to be shown.
    FailedAsItMust,
    /// Every figure is as expected, though one must not be: the experiment sees nothing.
    Blind,
}

impl Card {
    /// What the run amounts to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.failed().next().is_some(), self.counter.is_some()) {
            (false, false) => Verdict::Held,
            (true, false) => Verdict::Broken,
            (true, true) => Verdict::FailedAsItMust,
            (false, true) => Verdict::Blind,
        }
    }

    /// The names of the figures that are not as expected.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        self.assertions.iter().filter(|assertion| !assertion.holds()).map(|assertion| assertion.name)
    }

    /// The card as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let figures: serde_json::Map<_, _> = self
            .assertions
            .iter()
            .map(|assertion| (assertion.name.to_owned(), assertion.actual.into()))
            .collect();
        serde_json::json!({
            "experiment": self.experiment,
            "product": self.product,
            "database": self.database,
            "counter": self.counter,
            "verdict": self.verdict_text(),
            "passed": self.verdict() == Verdict::Held,
            "failed": self.failed().collect::<Vec<_>>(),
            "figures": figures,
            "assertions": self.assertions,
            "exitCodes": self.exit_codes,
            "components": self.components,
            "capturedAt": self.captured_at,
            "durationMs": self.duration_ms,
        })
    }

    fn verdict_text(&self) -> String {
        let failed = self.failed().collect::<Vec<_>>().join(", ");
        match self.verdict() {
            Verdict::Held => "every figure is as expected".to_owned(),
            Verdict::Broken => format!("not as expected: {failed}"),
            Verdict::FailedAsItMust => {
                format!("failed, which is the point of this counter-experiment; not as expected: {failed}")
            }
            Verdict::Blind => {
                "every figure is as expected, though this counter-experiment must fail: the experiment proves nothing"
                    .to_owned()
            }
        }
    }
}
