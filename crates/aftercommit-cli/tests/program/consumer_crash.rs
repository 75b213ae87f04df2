//! RabbitMQ and PostgreSQL.

use std::fs;
use std::path::Path;

use crate::run::{Ended, Home};
use crate::servers::Servers;

pub(crate) const EXPECTED: [&str; 11] = [
    "[assert] crashExitCode=137 PASS",
    "[assert] crashAfterBusinessCommit=1 PASS",
    "[assert] receivedTotal=4 PASS",
    "[assert] redeliveredCount=1 PASS",
    "[assert] duplicatesObserved=1 PASS",
    "[assert] duplicatesApplied=0 PASS",
    "[assert] uniqueMessageIds=3 PASS",
    "[assert] business_rows=3 PASS",
    "[assert] processed_rows=3 PASS",
    "[assert] queueDepthAfter=0 PASS",
    "[assert] consumerExitCode=0 PASS",
];

fn lab(home: &Home, servers: &Servers, more: &[&str]) -> Ended {
    let (broker, database) = (servers.broker(), servers.database());
    let arguments = ["lab", "rabbitmq", "consumer-crash", "--broker", &broker, "--database", &database];
    home.run(&[&arguments[..], more].concat())
}

/// Who says what, in order.
fn story(ended: &Ended) -> Vec<String> {
    let lines = ended.out.lines().filter(|line| line.contains(" timestamp="));
    let value = |line: &str, key: &str| {
        let rest = line.split(&format!(" {key}=")).nth(1).unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    let told = lines.map(|line| {
        let who = line.split(' ').next().unwrap();
        let (id, attempt, status) = (value(line, "messageId"), value(line, "attempt"), value(line, "status"));
        format!("{who} {id} {attempt} {} {status}", value(line, "redelivered"))
    });
    told.collect()
}

#[test]
fn the_figures_and_the_lines_are_those_of_the_experiment() {
    let (home, servers) = (Home::new(), Servers::new());
    let ended = lab(&home, &servers, &[]).expect(0);
    assert_eq!(ended.lines("[assert]"), EXPECTED);
    assert_eq!(
        story(&ended),
        [
            "[producer] mid-1 - - confirmed",
            "[producer] mid-2 - - confirmed",
            "[producer] mid-3 - - confirmed",
            "[consumer] mid-1 1 false received",
            "[consumer] mid-1 1 false business_committed",
            "[consumer] mid-1 1 false crash_injected",
            "[lab] mid-1 - - snapshot",
            "[consumer] mid-1 1 true received",
            "[consumer] mid-1 1 true duplicate_skipped",
            "[consumer] mid-1 1 true done",
            "[consumer] mid-2 1 false received",
            "[consumer] mid-2 1 false business_committed",
            "[consumer] mid-2 1 false done",
            "[consumer] mid-3 1 false received",
            "[consumer] mid-3 1 false business_committed",
            "[consumer] mid-3 1 false done",
            "[lab] mid-1 - - snapshot",
            "[lab] mid-2 - - snapshot",
            "[lab] mid-3 - - snapshot",
        ]
    );
    let first = ended.lines("[producer]")[0].split_once(" level=").unwrap().1;
    let (first, _) = first.split_once(" durationMs=").unwrap();
    assert_eq!(
        first,
        "info service=order-service product=rabbitmq lab=consumer-crash messageId=mid-1 eventType=order.created \
         schemaVersion=1 aggregateId=order-1001 traceId=trace-1 correlationId=correlation-1 \
         destination=orders.crash routingKey=order.created consumer=- attempt=- redelivered=-"
    );
    servers.are_clean();
    home.is_clean();
}

#[test]
fn ten_runs_have_one_log_on_either_database() {
    let (home, servers) = (Home::new(), Servers::new());
    for _ in 0..9 {
        lab(&home, &servers, &["--out", "runs"]).expect(0);
    }
    let broker = servers.broker();
    home.run(&["lab", "rabbitmq", "consumer-crash", "--broker", &broker, "--out", "runs"]).expect(0);
    let logs = logs(&home.path("runs"));
    assert_eq!(logs.len(), 10);
    let first = &logs[0];
    assert!(first.contains("timestamp=<ts> ") && first.contains("durationMs=<ms> "), "{first}");
    assert!(logs.iter().all(|log| log == first), "they differ");
    servers.are_clean();
}

fn logs(runs: &Path) -> Vec<String> {
    let folders = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    let groups: Vec<_> = folders(runs);
    let runs = groups.iter().flat_map(|group| -> Vec<_> { folders(group) });
    runs.map(|run| fs::read_to_string(run.join("log.txt")).unwrap()).collect()
}

#[test]
fn the_card_is_one_object_and_a_copy_is_stored_at_home() {
    let (home, servers) = (Home::new(), Servers::new());
    let ended = lab(&home, &servers, &["--json"]).expect(0);
    let card = ended.json();
    assert_eq!(card.at("/figures/business_rows"), 3);
    assert_eq!(card.at("/exitCodes/crashed"), 137);
    assert_eq!(card.at("/failed"), &serde_json::json!([]));
    for pointer in
        ["/components/program/sha256", "/components/brokerClient/sha256", "/components/databaseClient/sha256"]
    {
        assert_eq!(card.at(pointer).as_str().unwrap().len(), 64, "{pointer}");
    }
    let version = card.at("/components/broker/version").as_str().unwrap();
    assert!(version.starts_with("rabbitmq ") && !version.contains("unknown"), "{version}");
    assert!(card.at("/components/database/version").as_str().unwrap().starts_with("postgres 1"));
    let stored = ended.err.lines().find_map(|line| line.strip_prefix("stored in ")).unwrap();
    assert!(Path::new(stored).starts_with(home.path(".local/share/aftercommit/lab")), "{stored}");
    let read = |name: &str| fs::read_to_string(Path::new(stored).join(name)).unwrap();
    assert!(read("card.txt").contains("verdict            every figure is as expected"));
    assert!(read("card.json").contains("\"business_rows\": 3"));
    assert!(!read("log.txt").contains(&servers.broker()));
}

#[test]
fn telling_the_broker_first_loses_a_message() {
    let failed = [
        "crashAfterBusinessCommit",
        "receivedTotal",
        "duplicatesObserved",
        "business_rows",
        "processed_rows",
    ];
    counter("confirm-first", &failed);
}

#[test]
fn two_transactions_apply_a_message_twice() {
    counter("two-transactions", &["duplicatesObserved", "duplicatesApplied", "business_rows"]);
}

#[test]
fn without_an_inbox_a_message_is_applied_twice() {
    counter("no-inbox", &["duplicatesObserved", "duplicatesApplied", "business_rows", "processed_rows"]);
}

/// It must fail, by exactly these, and say that this was to be shown.
fn counter(name: &str, failed: &[&str]) {
    let (home, servers) = (Home::new(), Servers::new());
    let ended = lab(&home, &servers, &["--counter", name]).expect(1);
    let asserted = ended.lines("[assert]");
    assert_eq!(asserted.len(), EXPECTED.len());
    let not: Vec<_> = asserted.iter().filter(|line| line.contains(" FAIL expected ")).collect();
    let names: Vec<_> = not.iter().map(|line| line["[assert] ".len()..].split('=').next().unwrap()).collect();
    assert_eq!(names, failed, "{}", ended.all());
    let verdict = ended.lines("verdict")[0];
    assert!(verdict.contains("the point of this counter-experiment"), "{verdict}");
    assert!(verdict.ends_with(&failed.join(", ")), "{verdict}");
    servers.are_clean();
    home.is_clean();
}
