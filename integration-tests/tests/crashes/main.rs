//! A crash, an error and a lost answer at every point of a recorded run, on memory with SQLite: a second consumer
//! finishes the work, with one effect per id and nothing lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod life;
mod world;

use std::collections::BTreeMap;

use aftercommit_conformance::faults::{Fault, Point, Script, Seam, Side};

use life::{End, live};
use world::World;

const SEAMS: [Seam; 10] = [
    Seam::Recv,
    Seam::Begin,
    Seam::Claim,
    Seam::Handle,
    Seam::LastStatement,
    Seam::Commit,
    Seam::Ack,
    Seam::GiveBack,
    Seam::Publish,
    Seam::Close,
];

#[test]
fn crash_at_every_point_one_message_per_transaction() {
    everywhere(Fault::Crash, 1);
}

#[test]
fn crash_at_every_point_many_messages_per_transaction() {
    everywhere(Fault::Crash, 20);
}

#[test]
fn error_at_every_point_one_message_per_transaction() {
    everywhere(Fault::Fail, 1);
}

#[test]
fn error_at_every_point_many_messages_per_transaction() {
    everywhere(Fault::Fail, 20);
}

#[test]
fn lost_answer_at_every_point_one_message_per_transaction() {
    everywhere(Fault::LoseAnswer, 1);
}

#[test]
fn lost_answer_at_every_point_many_messages_per_transaction() {
    everywhere(Fault::LoseAnswer, 20);
}

/// Records a clean run, then lives once more for each of its points, with the fault there.
fn everywhere(fault: Fault, batch: usize) {
    let clean = Script::record();
    let world = World::new();
    assert_eq!(live(&world, &clean, batch), End::Drained, "the clean run");
    world.check("the clean run");
    let points = clean.trace().len();
    let mut reached: BTreeMap<(Seam, Side), usize> = BTreeMap::new();
    let mut beyond = 0;
    for number in 0..points {
        // Runs differ a little; one may have ended before this point.
        match twice(&Script::record().with(number, fault), fault, batch, |script| {
            script.trace().get(number).copied()
        }) {
            Some(point) => *reached.entry((point.seam, point.side)).or_default() += 1,
            None => beyond += 1,
        }
    }
    // The last points of a run that was longer than the recorded one are among these.
    for (seam, side) in SEAMS.into_iter().flat_map(|seam| [(seam, Side::Before), (seam, Side::After)]) {
        let first = |point: &Point| (point.seam, point.side) == (seam, side);
        let script = Script::record().at(seam, side, 0, fault);
        let hit = twice(&script, fault, batch, |script| script.trace().into_iter().find(first));
        assert!(hit.is_some(), "the run never comes to {side:?} {seam:?}");
        *reached.entry((seam, side)).or_default() += 1;
    }
    println!(
        "{fault:?}, batches of {batch}: {points} points, {beyond} not reached; faults by seam: {reached:?}"
    );
    assert!(beyond * 10 <= points, "{beyond} of {points} points were not reached");
}

/// A life with a fault and a clean one after it. Answers the point of the fault, if the first life came to it.
fn twice(
    script: &Script,
    fault: Fault,
    batch: usize,
    hit: impl Fn(&Script) -> Option<Point>,
) -> Option<Point> {
    let world = World::new();
    let end = live(&world, script, batch);
    let hit = hit(script);
    let place = format!("{fault:?} at {hit:?} ({end:?})");
    assert_eq!(end == End::Crashed, fault == Fault::Crash && hit.is_some(), "{place}");
    assert_eq!(live(&world, &Script::record(), batch), End::Drained, "the second life after {place}");
    world.check(&place);
    hit
}
