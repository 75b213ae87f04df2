//! The Python that publishes messages from outside, with `pika`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// A Python interpreter that can `import pika`: `AFTERCOMMIT_PYTHON`, or the machine's own, which is where the Debian
/// package `python3-pika` lands, or the first on the path.
///
/// # Errors
///
/// When none can.
pub fn with_pika() -> Result<PathBuf> {
    let named = std::env::var_os("AFTERCOMMIT_PYTHON").map(PathBuf::from);
    let usual = ["/usr/bin/python3", "python3"].map(PathBuf::from);
    named
        .into_iter()
        .chain(usual)
        .find(imports_pika)
        .ok_or_else(|| Error::new("no python3 here can import pika: run `cargo xtask setup`"))
}

fn imports_pika(python: &PathBuf) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import pika"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
