use crate::LogLine;

/// Is told how a run gets on, while it runs.
pub trait Watch: Send + Sync {
    /// A step of the run, for people.
    fn step(&self, text: &str);

    /// A process wrote a line.
    fn line(&self, line: &LogLine);
}
