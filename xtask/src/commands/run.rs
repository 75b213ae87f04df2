//! Commands that hand over to a program of the workspace.

use xtask::Result;

use super::cargo::{cargo, root, succeeds};
use super::servers;

/// `cargo xtask bench [ARGS...]`
pub(crate) fn bench(args: &[String]) -> Result<bool> {
    hand_over(&["run", "--release", "--package", "aftercommit-bench", "--"], args)
}

/// `cargo xtask soak [ARGS...]`
pub(crate) fn soak(args: &[String]) -> Result<bool> {
    hand_over(&["run", "--package", "aftercommit-integration-tests", "--bin", "soak", "--"], args)
}

pub(crate) fn has_soak() -> bool {
    let bin = root().join("integration-tests/src/bin");
    bin.join("soak.rs").exists() || bin.join("soak/main.rs").exists()
}

fn hand_over(command: &[&str], args: &[String]) -> Result<bool> {
    let mut cargo = cargo(command);
    cargo.args(args);
    servers::provide(&mut cargo)?;
    succeeds(&mut cargo)
}
