//! Output. Who reads it may have gone (`| head`): a run goes on then, and removes at its end what it made.

use std::fmt::Display;
use std::io::Write;

/// A line on the standard output.
pub(crate) fn out(text: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A line on the standard error.
pub(crate) fn err(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
