use std::sync::Arc;

use aftercommit_core::{Acker, Delivery, Message, MessageId, Redelivered, Redelivery, SettleError, Settled};
use async_trait::async_trait;

use super::*;

struct Ours(bool);

#[async_trait]
impl Acker for Ours {
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        Ok(Settled::Confirmed)
    }

    async fn give_back(self: Box<Self>, _: Redelivery) -> Result<Settled, SettleError> {
        Ok(Settled::Confirmed)
    }

    fn is_lost(&self) -> bool {
        !self.0
    }
}

fn jobs(count: usize, ours: bool) -> Vec<Job> {
    (0..count)
        .map(|n| {
            let message = Arc::new(Message::new(""));
            let delivery = Delivery::new(Arc::clone(&message), Redelivered::No, Box::new(Ours(ours)));
            Job { id: MessageId::new(format!("evt-{n}")).unwrap(), message, deliveries: vec![delivery] }
        })
        .collect()
}

fn conflict() -> StoreError {
    StoreError::new(Fault::Conflict, "a serialization failure")
}

fn away() -> StoreError {
    StoreError::new(Fault::Unavailable, "the foreign server is away")
}

/// Runs `step` on each group until none is left, and says how many calls that took.
fn until_done(rounds: &mut Rounds, mut step: impl FnMut(&mut Rounds, Group)) -> usize {
    let mut calls = 0;
    while let Some(group) = rounds.next() {
        calls += 1;
        assert!(calls < 1000, "it does not end");
        step(rounds, group);
    }
    calls
}

#[test]
fn conflicts_make_groups_smaller_and_end() {
    let mut rounds = Rounds::new(jobs(8, true));
    until_done(&mut rounds, |rounds, group| rounds.after_conflict(group, false, &conflict()));
    let done = rounds.take_done();
    assert_eq!(done.len(), 8);
    assert!(done.iter().all(|(_, verdict)| matches!(verdict, Verdict::Busy)));
}

#[test]
fn conflicts_that_never_end_once_a_handler_has_run_are_a_failure() {
    let mut rounds = Rounds::new(jobs(1, true));
    let calls = until_done(&mut rounds, |rounds, group| rounds.after_conflict(group, true, &conflict()));
    assert_eq!(calls, 49);
    assert!(matches!(&rounds.take_done()[..], [(_, Verdict::Failed(_))]));
}

#[test]
fn a_statement_that_is_always_away_holds_up_nobody_else() {
    let mut rounds = Rounds::new(jobs(5, true));
    until_done(&mut rounds, |rounds, group| {
        if group.jobs.iter().any(|job| job.id.as_str() == "evt-3") {
            rounds.after_away(group, false, &away());
        } else {
            let applied = group.jobs.iter().map(|_| Verdict::Applied).collect();
            rounds.close(group, applied);
        }
    });
    for (job, verdict) in rounds.take_done() {
        let failed = matches!(verdict, Verdict::Failed(_));
        assert_eq!(failed, job.id.as_str() == "evt-3", "{verdict:?}");
    }
}

#[test]
fn what_the_handler_states_to_be_away_is_never_charged() {
    let mut rounds = Rounds::new(jobs(1, true));
    for _ in 0..100 {
        let group = rounds.next().unwrap();
        rounds.after_away(group, true, &away());
    }
    assert!(rounds.take_done().is_empty());
}

#[test]
fn a_failing_batch_is_taken_apart_by_savepoints_of_fifty() {
    let mut rounds = Rounds::new(jobs(120, true));
    let group = rounds.next().unwrap();
    rounds.after_failure(group, Some(7), Failed::transient("no"), false);
    let mut sizes = Vec::new();
    until_done(&mut rounds, |rounds, group| {
        assert!(group.apart);
        sizes.push(group.jobs.len());
        let applied = group.jobs.iter().map(|_| Verdict::Applied).collect();
        rounds.close(group, applied);
    });
    assert_eq!(sizes, [50, 50, 20]);
}

#[test]
fn a_batch_handler_is_called_on_halves_until_the_culprit_is_alone() {
    let mut rounds = Rounds::new(jobs(50, true));
    until_done(&mut rounds, |rounds, group| {
        if group.jobs.iter().any(|job| job.id.as_str() == "evt-17") {
            rounds.after_failure(group, None, Failed::transient("no"), true);
        } else {
            let applied = group.jobs.iter().map(|_| Verdict::Applied).collect();
            rounds.close(group, applied);
        }
    });
    let done = rounds.take_done();
    let failed: Vec<_> = done.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_))).collect();
    assert_eq!((done.len(), failed.len()), (50, 1));
    assert_eq!(failed[0].0.id.as_str(), "evt-17");
}

#[test]
fn lost_jobs_are_not_run() {
    let mut rounds = Rounds::new(jobs(3, false));
    assert!(rounds.next().is_none());
    let done = rounds.take_done();
    assert!(done.len() == 3 && done.iter().all(|(_, verdict)| matches!(verdict, Verdict::Stopped)));
}

#[test]
fn a_duplicate_after_an_unanswered_commit_is_our_own() {
    let mut rounds = Rounds::new(jobs(2, true));
    let mut group = rounds.next().unwrap();
    group.after_unknown_commit();
    rounds.close(group, vec![Verdict::Duplicate, Verdict::Applied]);
    assert!(rounds.take_done().iter().all(|(_, verdict)| matches!(verdict, Verdict::Applied)));
}
