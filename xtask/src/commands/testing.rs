use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use xtask::{Error, Result};

use super::cargo::{cargo, could_not_start};
use super::failures::Failures;
use super::totals::Totals;
use super::{servers, setup};

/// `cargo xtask test [ARGS...]`
pub(crate) fn run(args: &[String]) -> Result<bool> {
    setup::run(&[])?;
    let (totals, failures) = test(args)?;
    println!("servers started here stay up: `cargo xtask services down` stops them");
    print!("{failures}");
    totals.close();
    Ok(totals.is_good())
}

/// Starts the servers and runs the tests; how many passed and failed over all test binaries, and what failures said.
pub(crate) fn test(args: &[String]) -> Result<(Totals, Failures)> {
    let mut command = cargo(&["test", "--no-fail-fast", "--all-features"]);
    // Cargo would silently test everything when both are given.
    if !names_packages(args) {
        command.arg("--workspace");
    }
    command.args(args);
    servers::provide(&mut command)?;
    count(&mut command)
}

fn names_packages(args: &[String]) -> bool {
    let for_cargo = args.iter().take_while(|arg| *arg != "--");
    for_cargo.into_iter().any(|arg| arg.starts_with("-p") || arg.starts_with("--package"))
}

fn count(command: &mut Command) -> Result<(Totals, Failures)> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| could_not_start(command, &e))?;
    let (mut totals, mut failures) = (Totals::default(), Failures::default());
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = line.map_err(|e| Error::new(format!("reading the tests' output: {e}")))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            totals += Totals::of_line(&line).unwrap_or_default();
            failures.read(&line);
        }
    }
    let status = child.wait().map_err(|e| Error::new(format!("waiting for cargo test: {e}")))?;
    if !status.success() && totals.failed == 0 {
        println!(
            "cargo test failed ({status}) without a failed test: a build error, or a test binary that died"
        );
        totals += Totals::one(false);
    }
    Ok((totals, failures))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_workspace_is_tested_unless_a_package_is_named() {
        assert!(names_packages(&words("-p aftercommit-sql")));
        assert!(names_packages(&words("--lib --package=aftercommit-sql")));
        assert!(!names_packages(&words("--lib -- -p")));
    }

    #[test]
    fn a_run_that_dies_without_a_failed_test_counts_as_failed() {
        let totals = |script: &str| count(Command::new("sh").args(["-c", script])).unwrap().0;
        let passed = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
        assert_eq!(totals(passed), Totals { passed: 2, failed: 0, skipped: 0 });
        assert_eq!(totals(&format!("{passed}; exit 101")), Totals { passed: 2, failed: 1, skipped: 0 });
    }
}
