//! Every switch of a broken store turns exactly its trials red, and every trial is turned red by
//! some switch: all on SQLite, and on PostgreSQL those that SQLite lacks.
//!
//! `switches.txt` says which. A change there says that a trial began or ceased to see a fault.

#![expect(clippy::unwrap_used, clippy::panic, reason = "all of this file is a test")]

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aftercommit_conformance::store::{self, Broken, BrokenFixture, BrokenStore, StoreFixture};
use aftercommit_conformance::trial::{self, Outcome, Trial};
use aftercommit_sql::{PgInbox, SqliteInbox};

type Names = BTreeSet<String>;
/// By switch, the trials that fail, each with its reason.
type Red = BTreeMap<String, BTreeMap<String, String>>;

fn on_sqlite(broken: Broken) -> Vec<Trial> {
    // Nothing here asks what a crash leaves, so no disk need be waited for.
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.exists() { memory } else { std::env::temp_dir() };
    let fixture = BrokenFixture::new(stage::sqlite::Fixture(folder), broken);
    let fixture: Arc<dyn StoreFixture<BrokenStore<SqliteInbox>>> = Arc::new(fixture);
    store::trials(&fixture).into_iter().filter(|trial| trial.absent().is_none()).collect()
}

fn on_postgres_alone(broken: Broken) -> Vec<Trial> {
    let sqlite: Names = on_sqlite(broken).iter().map(|trial| trial.name().to_owned()).collect();
    let fixture = BrokenFixture::new(stage::postgres::Fixture, broken);
    let fixture: Arc<dyn StoreFixture<BrokenStore<PgInbox>>> = Arc::new(fixture);
    let trials = store::trials(&fixture).into_iter();
    trials.filter(|trial| trial.absent().is_none() && !sqlite.contains(trial.name())).collect()
}

fn red(trials: Vec<Trial>) -> BTreeMap<String, String> {
    let mut red = BTreeMap::new();
    for trial in trials {
        let runtime = trial::runtime().unwrap();
        match runtime.block_on(trial.run()) {
            Outcome::Passed => {}
            Outcome::Failed(reason) => drop(red.insert(trial.name().to_owned(), reason)),
            Outcome::Absent(absent) => panic!("{} lacks {}", trial.name(), absent.what),
        }
        // What a broken store keeps open is not waited for.
        runtime.shutdown_background();
    }
    red
}

/// Each switch's trials: its name, then the trials' names, indented.
fn table(all: &Names) -> BTreeMap<String, Names> {
    let mut table = BTreeMap::new();
    for block in include_str!("switches.txt").split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let mut lines = block.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let Some(switch) = lines.next() else { continue };
        let named: Names = lines.map(str::to_owned).collect();
        let unknown: Vec<_> = named.difference(all).collect();
        assert!(unknown.is_empty(), "{switch} names trials that do not exist: {unknown:?}");
        assert!(table.insert(switch.to_owned(), named).is_none(), "{switch} stands there twice");
    }
    table
}

/// Mostly waiting for disks and deadlines, so on more threads than there are processors.
fn run_all(trials: fn(Broken) -> Vec<Trial>) -> Red {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Red::new()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(broken) = Broken::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let red = red(trials(*broken));
                    found.lock().unwrap().insert(format!("{broken:?}"), red);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

fn compare(trials: fn(Broken) -> Vec<Trial>) {
    let names = |trials: Vec<Trial>| trials.iter().map(|trial| trial.name().to_owned()).collect::<Names>();
    let all = names(trials(Broken::FoldsCase));
    let known = names(on_sqlite(Broken::FoldsCase))
        .union(&names(on_postgres_alone(Broken::FoldsCase)))
        .cloned()
        .collect();
    let table = table(&known);
    let found = run_all(trials);
    let mut wrong = String::new();
    for (switch, red) in &found {
        let expected: Names =
            table.get(switch).into_iter().flatten().filter(|name| all.contains(*name)).cloned().collect();
        for (name, reason) in red.iter().filter(|(name, _)| !expected.contains(*name)) {
            wrong.push_str(&format!("{switch}: red, not in the table: {name}: {reason}\n"));
        }
        for name in expected.iter().filter(|name| !red.contains_key(*name)) {
            wrong.push_str(&format!("{switch}: in the table, green: {name}\n"));
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
fn each_switch_turns_exactly_its_trials_red_on_sqlite() {
    compare(on_sqlite);
}

#[test]
fn each_switch_turns_exactly_its_trials_red_on_postgres() {
    compare(on_postgres_alone);
}

#[test]
fn no_switch_goes_unseen() {
    let text = include_str!("switches.txt");
    for broken in Broken::ALL {
        let line = format!("{broken:?}");
        assert!(text.lines().any(|found| found == line), "{line} is not in switches.txt");
    }
}
