use std::fmt;

/// What went wrong, as a sentence for the person at the terminal.
///
/// Nobody decides by kinds of failure here, so there is text only; it may span lines (the tail of a server's log).
#[derive(Debug)]
pub struct Error(String);

/// The result of everything that can fail in this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that says `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Adds what was being done to an error from below.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error(format!("{}: {e}", what())))
    }
}
