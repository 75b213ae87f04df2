use aftercommit_lab::{LogLine, Watch};

use crate::say;

/// Steps go to the standard error; lines go to the standard output, where they are wanted.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) lines: bool,
}

impl Watch for Progress {
    fn step(&self, text: &str) {
        say::err(text);
    }

    fn line(&self, line: &LogLine) {
        if self.lines {
            say::out(line);
        }
    }
}
