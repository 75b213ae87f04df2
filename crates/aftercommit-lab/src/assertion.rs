use std::fmt;

use serde::Serialize;

/// One figure of an experiment, with what it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assertion {
    /// Its name.
    pub name: &'static str,
    /// What it must be.
    pub expected: i64,
    /// What it was.
    pub actual: i64,
}

impl Assertion {
    /// Whether it is what it must be.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.expected == self.actual
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, expected, actual } = self;
        write!(f, "[assert] {name}={actual} ")?;
        if self.holds() { f.write_str("PASS") } else { write!(f, "FAIL expected {expected}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_not_as_expected_says_what_was() {
        let rows = |actual| Assertion { name: "business_rows", expected: 3, actual };
        assert_eq!(rows(3).to_string(), "[assert] business_rows=3 PASS");
        assert_eq!(rows(4).to_string(), "[assert] business_rows=4 FAIL expected 3");
    }
}
