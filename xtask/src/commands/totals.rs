//! Counts of what passed and failed.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Totals {
    /// Reads the closing line of a test binary, or of rustdoc's tests:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |word: &str| {
            let part = counts.split(';').map(str::trim).find(|part| part.ends_with(word))?;
            part.split_once(' ')?.0.parse().ok()
        };
        Some(Self { passed: count(" passed")?, failed: count(" failed")?, skipped: count(" ignored")? })
    }

    pub(crate) const fn one(passed: bool) -> Self {
        if passed {
            Self { passed: 1, failed: 0, skipped: 0 }
        } else {
            Self { passed: 0, failed: 1, skipped: 0 }
        }
    }

    /// Prints the last line of a run.
    pub(crate) fn close(self) {
        if self.skipped > 0 {
            println!(
                "{} tests are about what a product declares not to have: each says so above",
                self.skipped
            );
        }
        println!("{self}");
    }

    pub(crate) const fn is_good(self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_line_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.02s";
        assert_eq!(Totals::of_line(line), Some(Totals { passed: 12, failed: 3, skipped: 1 }));
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "test claims::result: ok. ... ok",
            "running 3 tests",
            "test result: ok",
            " test result: ok. 1 passed",
        ] {
            assert_eq!(Totals::of_line(line), None, "{line}");
        }
    }

    #[test]
    fn no_test_at_all_is_not_good() {
        assert!(!Totals::default().is_good());
        assert!(Totals::one(true).is_good());
        let mut sum = Totals::one(true);
        sum += Totals::one(false);
        assert!(!sum.is_good());
        assert_eq!(sum.to_string(), "1 passed, 1 failed");
    }
}
