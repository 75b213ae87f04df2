//! Commands that hand over to a program of the workspace.

use xtask::Result;

use super::cargo::{cargo, root, succeeds};
use super::servers;

/// `cargo xtask bench [ARGS...]`
pub(crate) fn bench(args: &[String]) -> Result<bool> {
    let mut cargo = cargo(&["run", "--release", "--package", "aftercommit-bench", "--"]);
    servers::provide(&mut cargo)?;
    succeeds(cargo.args(args))
}

/// `cargo xtask soak [--minutes N] [--seed S]`, on servers of its own.
pub(crate) fn soak(args: &[String]) -> Result<bool> {
    let run = &["run", "--package", "aftercommit-integration-tests", "--bin", "soak", "--"];
    succeeds(cargo(run).args(args))
}

pub(crate) fn has_soak() -> bool {
    let bin = root().join("integration-tests/src/bin");
    bin.join("soak.rs").exists() || bin.join("soak/main.rs").exists()
}
