//! The queue in a file, which needs no server.
#![cfg(all(feature = "sqlqueue", feature = "sqlite"))]

use std::collections::BTreeSet;
use std::fs;

use crate::run::Home;

#[test]
fn ten_runs_of_consumer_crash_hold_and_have_one_log() {
    let home = Home::new();
    for _ in 0..10 {
        let ended = home.run(&["lab", "sqlqueue", "consumer-crash", "--out", "runs"]).expect(0);
        assert_eq!(ended.lines("[assert]").iter().filter(|line| line.ends_with(" PASS")).count(), 11);
    }
    let runs = fs::read_dir(home.path("runs/sqlqueue-sqlite-consumer-crash")).unwrap();
    let logs: Vec<_> = runs.map(|run| fs::read(run.unwrap().path().join("log.txt")).unwrap()).collect();
    assert_eq!(logs.len(), 10);
    assert_eq!(logs.iter().collect::<BTreeSet<_>>().len(), 1, "they differ");
    home.is_clean();
}

#[test]
fn each_counter_experiment_fails() {
    let home = Home::new();
    for (counter, failed) in [
        ("confirm-first", "[assert] business_rows=2 FAIL expected 3"),
        ("two-transactions", "[assert] duplicatesApplied=1 FAIL expected 0"),
        ("no-inbox", "[assert] processed_rows=0 FAIL expected 3"),
    ] {
        let ended = home.run(&["lab", "sqlqueue", "consumer-crash", "--counter", counter]).expect(1);
        assert!(ended.lines("[assert]").contains(&failed), "{}", ended.all());
    }
    home.is_clean();
}
