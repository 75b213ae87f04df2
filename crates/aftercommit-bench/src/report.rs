//! What was measured, as text, JSON and Markdown.

mod show;

use serde::Serialize;

use crate::place::Settings;

/// A median with the smallest and the largest value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

/// Whether a row is where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// At the goal.
    Goal,
    /// At the bar, or without one, but not at the goal.
    Below,
    /// Under the bar.
    Failed,
    /// Nothing was wanted.
    Shown,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was compared.
    pub title: String,
    /// The product's own figure, with its unit.
    pub ours: String,
    /// The yardstick's.
    pub yardstick: String,
    /// Ours ÷ yardstick, round by round.
    pub ratio: Option<Figure>,
    /// Under this ratio the run fails.
    pub bar: Option<f64>,
    /// What shall be reached.
    pub goal: Option<f64>,
    /// Smaller is better.
    pub at_most: bool,
    /// What else was seen.
    pub note: String,
}

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The day, UTC.
    pub date: String,
    /// Rounds of each comparison.
    pub rounds: usize,
    /// The database's settings.
    pub settings: Settings,
    /// The table.
    pub rows: Vec<Row>,
}

impl Figure {
    /// Of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let half = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(at(half.saturating_sub(1)), at(half))
        } else {
            at(half)
        };
        Self { median, least: at(0), most: at(values.len().saturating_sub(1)) }
    }
}

impl Row {
    /// Whether it is where it should be.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Some(ratio) = self.ratio else { return Standing::Shown };
        let reaches =
            |wanted: f64| if self.at_most { ratio.median <= wanted } else { ratio.median >= wanted };
        match (self.bar, self.goal) {
            (Some(bar), _) if !reaches(bar) => Standing::Failed,
            (_, Some(goal)) if !reaches(goal) => Standing::Below,
            (None, None) => Standing::Shown,
            _ => Standing::Goal,
        }
    }
}

impl Report {
    /// Whether no row is under its bar.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.standing() != Standing::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, at_most: bool) -> Row {
        let (ours, yardstick, note) = (String::new(), String::new(), String::new());
        let (bar, goal) = if at_most { (None, Some(1.1)) } else { (Some(0.9), Some(0.95)) };
        Row { title: "t".into(), ours, yardstick, ratio: Some(Figure::of([ratio])), bar, goal, at_most, note }
    }

    #[test]
    fn a_median_is_the_middle() {
        assert!((Figure::of([3.0, 1.0, 2.0]).median - 2.0).abs() < 1e-9);
        let four = Figure::of([4.0, 1.0, 2.0, 3.0]);
        assert!((four.median - 2.5).abs() < 1e-9 && four.least < 1.1 && four.most > 3.9);
    }

    #[test]
    fn bars_and_goals_are_told_apart() {
        let standings = [0.89, 0.9, 0.95].map(|ratio| row(ratio, false).standing());
        assert_eq!(standings, [Standing::Failed, Standing::Below, Standing::Goal]);
        assert_eq!(row(1.2, true).standing(), Standing::Below);
        assert_eq!(row(1.0, true).standing(), Standing::Goal);
    }
}
