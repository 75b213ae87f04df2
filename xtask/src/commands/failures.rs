//! What failed tests said, kept for the end of a long run.

use std::fmt;

/// Lines of one failure that are repeated: its beginning tells what and where, its end what it came to.
const HEAD: usize = 25;
const TAIL: usize = 25;

/// The blocks of failed tests, as test binaries print them: `---- NAME stdout ----` or `---- NAME ----`, then text.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    blocks: Vec<Vec<String>>,
    in_block: bool,
}

impl Failures {
    pub(crate) fn read(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.blocks.push(Vec::new());
            self.in_block = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.in_block = false;
        }
        if let (true, Some(block)) = (self.in_block, self.blocks.last_mut()) {
            block.push(line.to_owned());
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for block in &self.blocks {
            let left_out = block.len().saturating_sub(HEAD + TAIL);
            for (number, line) in block.iter().enumerate() {
                if left_out == 0 || number < HEAD || number >= HEAD + left_out {
                    writeln!(f, "{line}")?;
                } else if number == HEAD {
                    writeln!(f, "[{left_out} lines are left out here: see above]")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut failures = Failures::default();
        text.lines().for_each(|line| failures.read(line));
        failures.to_string()
    }

    #[test]
    fn the_blocks_of_failed_tests_are_kept_and_nothing_else() {
        let text = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nwhy\n\n\n\
                    failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\nrunning 1 test\n";
        assert_eq!(read(text), "---- b stdout ----\nwhy\n\n\n");
    }

    #[test]
    fn long_ones_lose_their_middle() {
        let lines: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let shown = read(&format!("---- b ----\n{}\ntest result: FAILED. ", lines.join("\n")));
        let shown: Vec<_> = shown.lines().collect();
        assert_eq!(shown.len(), HEAD + 1 + TAIL);
        assert_eq!(shown.first(), Some(&"---- b ----"));
        assert_eq!(shown[HEAD], "[51 lines are left out here: see above]");
        assert_eq!(shown.last(), Some(&"99"));
    }

    #[test]
    fn no_failure_says_nothing() {
        assert_eq!(read("running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed"), "");
    }
}
