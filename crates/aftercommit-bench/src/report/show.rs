use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Report, Row, Standing};
use crate::error::{Error, Result};

const FROM: &str = "<!-- figures: written by `cargo xtask bench inbox --write docs/benchmarks.md` -->";
const TO: &str = "<!-- end of figures -->";

impl Standing {
    const fn text(self) -> &'static str {
        match self {
            Self::Goal => "PASS",
            Self::Below => "below its goal",
            Self::Failed => "FAIL",
            Self::Shown => "",
        }
    }
}

impl Row {
    fn ratio_text(&self) -> String {
        self.ratio.map_or_else(String::new, |r| format!("{:.2} ({:.2}–{:.2})", r.median, r.least, r.most))
    }

    fn wanted(&self) -> String {
        let sign = if self.at_most { "≤" } else { "≥" };
        let bar = self.bar.map(|bar| format!("bar {sign} {bar}"));
        let goal = self.goal.map(|goal| format!("goal {sign} {goal}"));
        [bar, goal].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Report {
    fn settings_text(&self) -> String {
        let s = &self.settings;
        format!(
            "{}; {} rounds; PostgreSQL {} with fsync = {}, synchronous_commit = {}, shared_buffers = {}; {} CPUs",
            self.date, self.rounds, s.postgres, s.fsync, s.synchronous_commit, s.shared_buffers, s.cpus
        )
    }

    /// For a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.settings_text();
        for row in &self.rows {
            let _ = write!(text, "\n\n{}\n  ours {}", row.title, row.ours);
            if !row.yardstick.is_empty() {
                let _ = write!(text, ", yardstick {}", row.yardstick);
            }
            if row.ratio.is_some() {
                let _ = write!(text, "\n  ratio {}", row.ratio_text());
            }
            if row.standing() != Standing::Shown {
                let _ = write!(text, "  {}  {}", row.wanted(), row.standing().text());
            }
            if !row.note.is_empty() {
                let _ = write!(text, "\n  {}", row.note);
            }
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!("{}.\n\n", self.settings_text());
        text.push_str(
            "| cell | ours | yardstick | ratio (least–most) | wanted | |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let (ratio, wanted, standing) = (row.ratio_text(), row.wanted(), row.standing().text());
            let Row { title, ours, yardstick, note, .. } = row;
            let note = if note.is_empty() { String::new() } else { format!("<br>{note}") };
            let _ =
                writeln!(text, "| {title}{note} | {ours} | {yardstick} | {ratio} | {wanted} | {standing} |");
        }
        text
    }

    /// Puts the table between the markers of a Markdown file.
    ///
    /// # Errors
    /// When the file cannot be read or written, or has no markers.
    pub fn write(&self, file: &Path) -> Result<()> {
        let page = fs::read_to_string(file)?;
        let parts = page.split_once(FROM).and_then(|(head, rest)| Some((head, rest.split_once(TO)?.1)));
        let (head, tail) =
            parts.ok_or_else(|| Error::new(format!("{} lacks the line {FROM} or {TO}", file.display())))?;
        fs::write(file, format!("{head}{FROM}\n{}{TO}{tail}", self.markdown()))?;
        Ok(())
    }
}
