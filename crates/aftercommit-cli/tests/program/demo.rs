//! The demonstration.

use crate::run::{Ended, Home};

/// What must hold on every product.
fn check(ended: &Ended, seed: u64) {
    let figures = ended.json();
    let number = |name| figures.number(name);
    assert_eq!((number("publishedTotal"), number("uniqueMessageIds")), (1200, 1000));
    assert_eq!((number("business_rows"), number("duplicatesApplied"), number("lost")), (1000, 0, 0));
    assert_eq!((number("crashes"), number("seed"), number("queueDepthAfter")), (4, seed, 0));
    // Each death between commit and confirm makes a duplicate beside the orders that were sent twice.
    assert!(number("duplicatesObserved") >= 203, "{}", ended.all());
    assert!(number("redeliveredCount") >= 4, "{}", ended.all());
    assert!(number("receivedTotal") >= 1204, "{}", ended.all());
    assert!(figures.text("verdict").starts_with("the promise held"), "{}", ended.all());
    assert_eq!(ended.err.matches("exit code 137; started again").count(), 4, "{}", ended.err);
    assert_eq!(ended.err.matches("between commit and confirm").count(), 3, "{}", ended.err);
}

#[cfg(all(feature = "sqlqueue", feature = "sqlite"))]
#[test]
fn it_needs_nothing_and_a_seed_repeats_it() {
    let home = Home::new();
    let crashes = |seed: &str| {
        let ended = home.run(&["demo", "--json", "--seed", seed]).expect(0);
        check(&ended, seed.parse().unwrap());
        ended.err.lines().filter(|line| line.starts_with("crash ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(crashes("7"), crashes("7"));
    home.is_clean();
}

/// How many deliveries were under way at a crash differs from run to run, and so do three figures and the time.
#[cfg(all(feature = "sqlqueue", feature = "sqlite"))]
#[test]
fn the_readme_shows_what_it_prints() {
    let readme = include_str!("../../../../README.md");
    let shown = readme.split("\n```text\n").find(|block| block.starts_with("published"));
    let shown = shown.and_then(|block| block.split("```").next()).unwrap();
    let printed = Home::new().run(&["demo"]).expect(0).out;
    let varies = |line: &str| {
        ["received", "redelivered", "duplicates", "the promise"].iter().any(|word| line.starts_with(word))
    };
    let words = |line: &str| -> Vec<String> {
        let is_fixed = |word: &&str| !varies(line) || !word.contains(|c: char| c.is_ascii_digit());
        line.split_whitespace().filter(is_fixed).map(str::to_owned).collect()
    };
    let lines = |text: &str| text.lines().map(words).collect::<Vec<_>>();
    assert_eq!(lines(shown), lines(&printed));
}

#[cfg(all(feature = "sqlqueue", feature = "sqlite"))]
#[test]
fn confirming_first_loses_orders_and_says_so() {
    let home = Home::new();
    // With this seed all four would die at orders that are sent twice.
    let ended = home.run(&["demo", "--order", "confirm-first", "--seed", "226"]).expect(1);
    assert!(ended.out.contains("the promise is broken: "), "{}", ended.all());
    let lost = ended.lines("lost")[0].split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    assert_eq!(lost, 4, "each death loses one: {}", ended.all());
    home.is_clean();
}

#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
#[test]
fn it_does_the_same_on_real_servers() {
    let (home, servers) = (Home::new(), crate::servers::Servers::new());
    let (broker, database) = (servers.broker(), servers.database());
    let ended = home.run(&["demo", "--json", "--broker", &broker, "--database", &database]).expect(0);
    check(&ended, 1);
    servers.are_clean();
    home.is_clean();
}
