//! Every switch turns exactly its trials red, and every trial is turned red by some switch.
//!
//! `switches.txt` says which. A change there says that a trial began or ceased to see a fault.

#![expect(clippy::unwrap_used, clippy::panic, reason = "all of this file is a test")]

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aftercommit_conformance::broker::{self, BrokerFixture};
use aftercommit_conformance::trial::{Outcome, Trial};
use aftercommit_core::Delay;
use aftercommit_memory::{Broken, Settings};

type Names = BTreeSet<String>;

fn trials(fixture: stage::Fixture) -> Vec<Trial> {
    let fixture: Arc<dyn BrokerFixture> = Arc::new(fixture);
    broker::trials(&fixture)
}

/// The trials that fail, each with its reason.
fn red(fixture: stage::Fixture) -> BTreeMap<String, String> {
    let mut red = BTreeMap::new();
    for trial in trials(fixture) {
        match stage::runtime().unwrap().block_on(trial.run()) {
            Outcome::Passed => {}
            Outcome::Failed(reason) => drop(red.insert(trial.name().to_owned(), reason)),
            Outcome::Absent(absent) => panic!("memory lacks {}", absent.what),
        }
    }
    red
}

/// Each switch's trials: `Switch`, or `Switch: all but`, then the trials' names, indented.
fn table(all: &Names) -> BTreeMap<String, Names> {
    let mut table = BTreeMap::new();
    for block in include_str!("switches.txt").split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let mut lines = block.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let Some(head) = lines.next() else { continue };
        let named: Names = lines.map(str::to_owned).collect();
        let unknown: Vec<_> = named.difference(all).collect();
        assert!(unknown.is_empty(), "{head} names trials that do not exist: {unknown:?}");
        let (switch, names) = match head.strip_suffix(": all but") {
            Some(switch) => (switch, all.difference(&named).cloned().collect()),
            None => (head, named),
        };
        assert!(table.insert(switch.to_owned(), names).is_none(), "{switch} stands there twice");
    }
    table
}

/// Runs every switch, on as many threads as there are processors.
fn run_all() -> BTreeMap<String, BTreeMap<String, String>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(broken) = Broken::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let fixture = stage::Fixture { broken: Some(*broken), ..stage::Fixture::default() };
                    let red = red(fixture);
                    found.lock().unwrap().insert(format!("{broken:?}"), red);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn each_switch_turns_exactly_its_trials_red() {
    let all: Names = trials(stage::Fixture::default()).iter().map(|trial| trial.name().to_owned()).collect();
    let table = table(&all);
    let found = run_all();
    let mut wrong = String::new();
    for (switch, red) in &found {
        let red: Names = red.keys().cloned().collect();
        let expected = table.get(switch).cloned().unwrap_or_default();
        assert!(!red.is_empty() || !expected.is_empty(), "no trial sees {switch}");
        if red != expected {
            let more: Vec<_> = red.difference(&expected).collect();
            let less: Vec<_> = expected.difference(&red).collect();
            wrong.push_str(&format!("{switch}:\n  red, not in the table: {more:?}\n"));
            wrong.push_str(&format!("  in the table, green: {less:?}\n"));
        }
    }
    let gone: Vec<_> = table.keys().filter(|switch| !found.contains_key(*switch)).collect();
    assert!(gone.is_empty(), "the table names switches that do not exist: {gone:?}");
    assert!(wrong.is_empty(), "{wrong}");
    let seen: Names = found.values().flat_map(|red| red.keys().cloned()).collect();
    let never: Vec<_> = all.difference(&seen).collect();
    assert!(never.is_empty(), "no switch turns these red, so nothing shows that they can fail: {never:?}");
}

#[test]
fn a_native_delay_passes_too() {
    let native = Delay::Native { longest: std::time::Duration::from_secs(3600) };
    let settings = Settings { delay: native, ..Settings::default() };
    let red = red(stage::Fixture { settings, ..stage::Fixture::default() });
    assert!(red.is_empty(), "{red:#?}");
}

#[test]
fn the_fault_decorators_change_nothing_by_themselves() {
    let red = red(stage::Fixture { decorated: true, ..stage::Fixture::default() });
    assert!(red.is_empty(), "{red:#?}");
}
