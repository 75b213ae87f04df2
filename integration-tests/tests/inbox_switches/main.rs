//! The inbox suite is worth something: with a database or a broker that breaks one promise, the trials that stand for
//! that promise turn red.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod lying;
#[path = "../../../crates/aftercommit-memory/tests/stage/mod.rs"]
#[expect(dead_code, reason = "its runtime has virtual time, which databases do not know")]
mod stage;

use std::sync::Arc;

use aftercommit_conformance::broker::BrokerFixture;
use aftercommit_conformance::inbox;
use aftercommit_conformance::trial::{self, Outcome, Trial};
use aftercommit_memory::Broken;

use lying::{Lie, LyingBooks};

/// Runs some trials and answers which of them failed, and how.
fn red(broken: Option<Broken>, lie: Option<Lie>, names: &[&str]) -> Vec<String> {
    let broker: Arc<dyn BrokerFixture> = Arc::new(stage::Fixture { broken, ..stage::Fixture::default() });
    let all = inbox::trials(&broker, &Arc::new(LyingBooks { lie }));
    let chosen: Vec<&Trial> = names
        .iter()
        .map(|name| {
            all.iter().find(|trial| trial.name() == *name).unwrap_or_else(|| panic!("no trial {name}"))
        })
        .collect();
    let failed =
        chosen.into_iter().filter_map(|trial| match trial::runtime().unwrap().block_on(trial.run()) {
            Outcome::Passed => None,
            Outcome::Failed(reason) => {
                println!("{}: {reason}", trial.name());
                Some(trial.name().to_owned())
            }
            Outcome::Absent(absent) => panic!("{} lacks {}", trial.name(), absent.what),
        });
    failed.collect()
}

fn all_red(broken: Option<Broken>, lie: Option<Lie>, names: &[&str]) {
    assert_eq!(red(broken, lie, names), names, "red with {broken:?} {lie:?}");
    assert!(red(None, None, names).is_empty(), "red without a broken promise");
}

#[test]
fn a_claim_that_is_always_ours() {
    let names = ["once::delivered_three_times_applied_once", "parallel::two_instances_share_one_identity"];
    all_red(None, Some(Lie::ClaimIsAlwaysOurs), &names);
}

#[test]
fn a_claim_that_is_never_ours() {
    all_red(None, Some(Lie::ClaimIsNeverOurs), &["once::applied_once_and_confirmed"]);
}

#[test]
fn a_proof_that_always_holds() {
    let names = [
        "failure::a_swallowed_sql_error_is_never_confirmed_as_applied",
        "failure::a_raw_rollback_is_never_confirmed_as_applied",
    ];
    all_red(None, Some(Lie::ProofAlwaysHolds), &names);
}

#[test]
fn a_commit_that_did_not_happen() {
    all_red(None, Some(Lie::CommitDidNotHappen), &["once::applied_once_and_confirmed"]);
}

#[test]
fn a_commit_that_is_said_to_have_failed() {
    // Called "refused" though it happened: an attempt is spent on what is done.
    all_red(None, Some(Lie::LostCommitSaysRefused), &["once::applied_once_and_confirmed"]);
}

#[test]
fn a_claim_that_is_kept_though_its_handler_failed() {
    all_red(None, Some(Lie::UnclaimForgets), &["failure::one_failure_of_fifty_costs_one_message"]);
}

#[test]
fn failures_that_are_not_forgotten() {
    all_red(None, Some(Lie::ForgetForgets), &["failure::attempts_used_up_are_parked_with_diagnostics"]);
}

#[test]
fn a_broker_that_settles_neighbours() {
    let names = ["parallel::h23_settling_out_of_order_returns_only_the_open_one"];
    all_red(Some(Broken::AckTakesAllBefore), None, &names);
}

#[test]
fn a_broker_that_confirms_what_nobody_gets() {
    let names = ["outage::a_missing_dead_letter_destination_keeps_the_original"];
    all_red(Some(Broken::UnroutableSaysOk), None, &names);
}

#[test]
fn a_broker_that_does_not_wait() {
    all_red(Some(Broken::AfterComesAtOnce), None, &["once::a_failure_comes_again_and_is_applied_once"]);
}
