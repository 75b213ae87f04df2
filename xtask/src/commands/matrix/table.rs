//! The page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use xtask::{Error, Result};

use super::promises::Promise;
use super::results::{Outcome, Results};
use super::{DATABASES, Found, PRODUCTS};

const HEAD: &str = "\
# The matrix

Written by `cargo xtask matrix`, which runs the suites and the crash lab on the real servers. Do not edit it by hand.

Each row is a promise of [guarantees.md](guarantees.md), each column a product with a database. A cell says how many of the
promise's trials passed there: those of the inbox suite on this very pair, else those of the broker suite on the product or
of the store suite on the database. `absent` means that the product or the database lacks what the trial is about; the reasons
stand below.
";

/// A trial of this name is in no suite: the page of promises names one that does not exist.
const NOT_RUN: &str = "**not run**";

/// The page, and whether everything holds.
pub(super) fn write(promises: &[Promise], found: &Found) -> (String, bool) {
    let mut page = HEAD.to_owned();
    let columns: Vec<_> = PRODUCTS.iter().flat_map(|p| DATABASES.iter().map(|d| (*p, *d))).collect();
    let title = columns.iter().map(|(product, database)| format!(" {product} × {database} |"));
    let _ =
        write!(page, "\n| promise |{}\n|---|{}\n", title.collect::<String>(), "---|".repeat(columns.len()));
    for promise in promises {
        let cells = columns.iter().map(|pair| format!(" {} |", cell(promise, found, *pair)));
        let _ = writeln!(page, "| {} |{}", promise.what, cells.collect::<String>());
    }
    let cells = columns.iter().map(|pair| match found.crashes.get(pair) {
        Some(Ok(figures)) => format!(" {figures} |"),
        Some(Err(_)) => " **failed** |".to_owned(),
        None => " one process only |".to_owned(),
    });
    let crash = "A consumer process that halts after COMMIT, before its confirm ([lab](lab.md))";
    let _ = writeln!(page, "| {crash} |{}", cells.collect::<String>());
    let cells = columns.iter().map(|pair| format!(" {} |", found.pairs.get(pair).map_or(0, Results::passed)));
    let _ = writeln!(page, "| All trials of the inbox suite that passed |{}", cells.collect::<String>());

    let reasons: BTreeSet<_> = suites(found).flat_map(Results::reasons).collect();
    page.push_str("\n## Absent\n\n");
    page.extend(reasons.iter().map(|reason| format!("- {reason}\n")));
    let failed: BTreeSet<_> = suites(found).flat_map(Results::failed).collect();
    let lab: Vec<_> = found.crashes.values().filter_map(|crash| crash.as_ref().err()).collect();
    if !failed.is_empty() || !lab.is_empty() {
        page.push_str("\n## Failed\n\n");
        page.extend(failed.iter().map(|name| format!("- `{name}`\n")));
        lab.iter().for_each(|error| println!("matrix: the lab failed: {error}"));
    }
    let all_ran = !page.contains(NOT_RUN);
    (page, all_ran && failed.is_empty() && lab.is_empty())
}

fn suites(found: &Found) -> impl Iterator<Item = &Results> {
    found.brokers.values().chain(found.stores.values()).chain(found.pairs.values())
}

fn cell(promise: &Promise, found: &Found, pair: (&'static str, &'static str)) -> String {
    let suites = [found.pairs.get(&pair), found.brokers.get(pair.0), found.stores.get(pair.1)];
    let outcome = |trial: &String| suites.iter().flatten().find_map(|suite| suite.get(trial));
    let outcomes: Vec<_> = promise.trials.iter().filter_map(outcome).collect();
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    let passed = count(|outcome| *outcome == Outcome::Passed);
    let absent = count(|outcome| matches!(outcome, Outcome::Absent(_)));
    let all = promise.trials.len();
    match (passed, absent) {
        _ if outcomes.len() < all => NOT_RUN.to_owned(),
        (passed, absent) if passed + absent < all => format!("**{} failed**", all - passed - absent),
        (passed, 0) => format!("{passed} of {all}"),
        (0, _) => "absent".to_owned(),
        (passed, absent) => format!("{passed} of {all}, {absent} absent"),
    }
}

/// What the lab's JSON says, in a few words.
pub(super) fn figures(json: &str) -> Result<String> {
    let card: Value = serde_json::from_str(json).map_err(|e| Error::new(format!("the lab's card: {e}")))?;
    if card["passed"] != Value::Bool(true) {
        return Err(Error::new(format!("the lab says: {}", card["verdict"])));
    }
    let figure = |name: &str| &card["figures"][name];
    Ok(format!(
        "received {}, redelivered {}, applied twice {}, rows {}",
        figure("receivedTotal"),
        figure("redeliveredCount"),
        figure("duplicatesApplied"),
        figure("business_rows")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pair: &str, broker: &str) -> Found {
        let mut found = Found::default();
        found.pairs.insert(("memory", "sqlite"), Results::read(pair));
        found.brokers.insert("memory", Results::read(broker));
        found
    }

    fn cell_of(trials: &[&str], found: &Found) -> String {
        let trials = trials.iter().map(|&trial| trial.to_owned()).collect();
        cell(&Promise { what: "It holds".to_owned(), trials }, found, ("memory", "sqlite"))
    }

    #[test]
    fn a_cell_counts_what_the_suites_say() {
        let found = found(
            "test a::one ... ok\ntest a::two ... FAILED\ntest [absent: Cut, none] a::three ... ignored\n",
            "test b::one ... ok\n",
        );
        assert_eq!(cell_of(&["a::one", "b::one"], &found), "2 of 2");
        assert_eq!(cell_of(&["a::one", "a::three"], &found), "1 of 2, 1 absent");
        assert_eq!(cell_of(&["a::three"], &found), "absent");
        assert_eq!(cell_of(&["a::one", "a::two"], &found), "**1 failed**");
        assert_eq!(cell_of(&["a::one", "c::none"], &found), "**not run**");
    }

    #[test]
    fn a_failure_is_named_and_not_good() {
        let (page, good) = write(&[], &found("test a::two ... FAILED\n", "test b::one ... ok\n"));
        assert!(!good && page.contains("- `a::two`"), "{page}");
    }

    #[test]
    fn a_card_that_did_not_pass_is_an_error() {
        assert!(figures("{\"passed\": false, \"verdict\": \"lost\"}").is_err());
        let card = "{\"passed\": true, \"figures\": {\"receivedTotal\": 4, \"redeliveredCount\": 1, \
                    \"duplicatesApplied\": 0, \"business_rows\": 3}}";
        assert_eq!(figures(card).unwrap(), "received 4, redelivered 1, applied twice 0, rows 3");
    }
}
