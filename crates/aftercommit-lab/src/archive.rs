//! Stored copies of runs, made so that two of them can be compared.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::consumer_crash::Report;
use crate::{Card, LabError};

/// Stores a run in a new folder below `parent`: `log.txt` (with placeholders for times, so that two runs that did the
/// same have the same), `card.txt`, `card.json`. Answers with the folder.
///
/// # Errors
/// [`LabError::Failed`] when it cannot be written.
pub fn store(report: &Report, parent: &Path) -> Result<PathBuf, LabError> {
    let folder = folder(&report.card, parent)?;
    let json = format!("{:#}\n", report.card.to_json());
    let files = [("log.txt", log(report)), ("card.txt", report.card.to_string()), ("card.json", json)];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(LabError::doing(format!("writing {}", path.display())))?;
    }
    Ok(folder)
}

/// A folder that nobody else has: two runs may end in the same millisecond.
fn folder(card: &Card, parent: &Path) -> Result<PathBuf, LabError> {
    let counter = card.counter.map(|counter| format!("-{counter}")).unwrap_or_default();
    let time: String = card.captured_at.chars().map(|c| if c == ':' { '-' } else { c }).collect();
    let group = parent.join(format!("{}-{}-{}{counter}", card.product, card.database, card.experiment));
    let doing = || LabError::doing(format!("making a folder in {}", group.display()));
    fs::create_dir_all(&group).map_err(doing())?;
    let named = |n: u32| group.join(if n == 0 { time.clone() } else { format!("{time}-{n}") });
    for path in (0..1000).map(named) {
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(doing()(error)),
        }
    }
    Err(LabError::failed(format!("{} has a thousand runs of one moment", group.display())))
}

fn log(report: &Report) -> String {
    let mut text = String::new();
    for line in &report.lines {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}", line.normalised());
    }
    for assertion in &report.card.assertions {
        let _ = writeln!(text, "{assertion}");
    }
    text
}
