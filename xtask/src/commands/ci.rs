use std::process::Command;
use std::time::Instant;

use xtask::{Error, Result};

use super::cargo::{cargo, output};
use super::failures::Failures;
use super::totals::Totals;
use super::{direction, facade, metadata, testing};

/// `cargo xtask ci`: goes on after a failing step and lists all failures at the end.
///
/// The order puts what takes seconds first; the features are those of all steps alike, so that cargo builds the
/// dependencies once for checking and once for running.
pub(crate) fn run() -> Result<bool> {
    let mut steps = Steps::default();
    steps.command("fmt", &mut cargo(&["fmt", "--all", "--check"]));
    let packages = metadata::packages()?;
    steps.step("direction of dependencies", || complain(&direction::violations(&packages)));
    steps.step("no product's name in the core", || complain(&direction::mentions()?));
    let features = facade::features(&packages)?;
    let one_by_one = || std::iter::once(None).chain(features.iter().copied().map(Some));
    for feature in one_by_one() {
        steps.step(&format!("clients of {}", named(feature)), || facade::check_clients(feature));
    }
    steps.deny();
    steps.command("clippy", &mut cargo(CLIPPY));
    steps.command("doc", cargo(DOC).env("RUSTDOCFLAGS", "-D warnings"));
    for feature in one_by_one() {
        steps.step(&format!("facade with {}", named(feature)), || facade::build(feature));
    }
    steps.tests();
    Ok(steps.close())
}

const CLIPPY: &[&str] =
    &["clippy", "--quiet", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
const DOC: &[&str] = &["doc", "--quiet", "--workspace", "--all-features", "--no-deps"];

fn named(feature: Option<&str>) -> &str {
    feature.unwrap_or("no feature")
}

fn complain(sentences: &[String]) -> Result<()> {
    if sentences.is_empty() { Ok(()) } else { Err(Error::new(sentences.join("\n"))) }
}

#[derive(Default)]
struct Steps {
    totals: Totals,
    failures: Vec<String>,
}

impl Steps {
    fn step(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        let start = Instant::now();
        let result = check();
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("ci: {name:40} {verdict:6} {:6.1} s", start.elapsed().as_secs_f64());
        self.totals += Totals::one(result.is_ok());
        if let Err(e) = result {
            println!("{e}");
            self.failures.push(name.to_owned());
        }
    }

    fn command(&mut self, name: &str, command: &mut Command) {
        self.step(name, || output(command).map(drop));
    }

    /// Advisories come from a database that is fetched from elsewhere than the crates: where it cannot be had, that is
    /// said, and counted neither as passed nor as failed.
    fn deny(&mut self) {
        if output(&mut cargo(&["deny", "--version"])).is_err() {
            self.step("deny", || {
                Err(Error::new("cargo-deny is not installed: run `cargo xtask setup --ci`"))
            });
            return;
        }
        self.command(
            "deny: bans, licences, sources",
            &mut cargo(&["deny", "check", "bans", "licenses", "sources"]),
        );
        match output(&mut cargo(&["deny", "fetch", "db"])) {
            Ok(_) => self
                .command("deny: advisories", &mut cargo(&["deny", "check", "--disable-fetch", "advisories"])),
            Err(_) => {
                println!("ci: {:40} NOT CHECKED: the advisory database cannot be fetched", "deny: advisories")
            }
        }
    }

    fn tests(&mut self) {
        println!("ci: tests");
        let start = Instant::now();
        let (totals, failures) = testing::test(&[]).unwrap_or_else(|e| {
            println!("{e}");
            (Totals::one(false), Failures::default())
        });
        print!("{failures}");
        println!("ci: {:40} {totals}, {:.1} s", "tests", start.elapsed().as_secs_f64());
        if !totals.is_good() {
            self.failures.push("tests".to_owned());
        }
        self.totals += totals;
    }

    fn close(self) -> bool {
        for failure in &self.failures {
            println!("ci: FAILED: {failure}");
        }
        self.totals.close();
        self.failures.is_empty()
    }
}
