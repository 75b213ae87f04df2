use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use aftercommit_core::BoxError;

use super::{Ability, BrokerFixture, Stage, trials};
use crate::trial::Outcome;

/// A product whose server is not there.
struct NoServer;

#[async_trait]
impl BrokerFixture for NoServer {
    fn product(&self) -> &'static str {
        "none"
    }

    async fn stage(&self, _trial: &str) -> Result<Arc<dyn Stage>, BoxError> {
        Err("no server at 127.0.0.1:1: start it with `cargo xtask services up none`".into())
    }

    fn absent(&self) -> Vec<(Ability, &'static str)> {
        vec![(Ability::Order, "it keeps none"), (Ability::Stall, "nothing can be stalled")]
    }
}

/// A missing server fails, and what a product lacks is neither passed nor failed.
#[tokio::test]
async fn nothing_passes_silently() {
    let fixture: Arc<dyn BrokerFixture> = Arc::new(NoServer);
    let mut absent = BTreeSet::new();
    for trial in trials(&fixture) {
        match trial.run().await {
            Outcome::Passed => panic!("{} passed without a server", trial.name()),
            Outcome::Failed(reason) => assert!(reason.contains("services up none"), "{reason}"),
            Outcome::Absent(lacking) => {
                absent.insert(trial.name().to_owned());
                assert!(["Order", "Stall"].contains(&lacking.what.as_str()), "{lacking:?}");
            }
        }
    }
    let expected = [
        "delivery::order_holds",
        "publish::a_lost_answer_is_unknown_and_not_sent_again",
        "publish::a_publish_ends_by_its_deadline",
    ];
    assert_eq!(absent, expected.map(str::to_owned).into());
}

#[test]
fn names_are_unique_and_only_a_restart_runs_alone() {
    let fixture: Arc<dyn BrokerFixture> = Arc::new(NoServer);
    let trials = trials(&fixture);
    let names: BTreeSet<_> = trials.iter().map(|trial| trial.name()).collect();
    assert_eq!(names.len(), trials.len());
    for trial in &trials {
        assert_eq!(trial.is_alone(), trial.name().contains("restart"), "{}", trial.name());
    }
}
