use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::{Error, Result};

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The cargo that runs us, at the workspace's folder, without standard input.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root()).stdin(Stdio::null());
    cargo
}

/// Runs the command to its end, its output on ours; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().map_err(|e| could_not_start(command, &e))?;
    Ok(status.success())
}

/// Runs the command to its end and returns its standard output; its standard error is the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| could_not_start(command, &e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(Error::new(format!("{out}{err}")))
}

pub(crate) fn could_not_start(command: &Command, e: &std::io::Error) -> Error {
    Error::new(format!("starting {}: {e}", command.get_program().display()))
}
