//! Output. Who reads it may have gone (`| head`): a run goes on then, and removes at its end what it made.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::Mutex;

/// Why the standard output could not be written, where that is more than a reader who has enough.
static UNWRITTEN: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// A line on the standard output.
pub(crate) fn out(text: impl Display) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let (Err(error), Ok(mut unwritten)) = (written, UNWRITTEN.lock())
        && error.kind() != ErrorKind::BrokenPipe
    {
        unwritten.get_or_insert(error);
    }
}

/// A line on the standard error.
pub(crate) fn err(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// What was to be said on the standard output and could not be.
pub(crate) fn unwritten() -> Option<std::io::Error> {
    UNWRITTEN.lock().ok()?.take()
}
