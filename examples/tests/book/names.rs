//! Names of things in the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::pages::{Page, root};

const SUITES: &str = "crates/aftercommit-conformance/src";
const MEASURES: &str = "crates/aftercommit-inbox/src/measures.rs";

/// How many trials of the suites are named, and those that do not exist.
pub(crate) fn trials(pages: &[Page]) -> (usize, Vec<String>) {
    let lists: Vec<(String, String)> = sources(&root().join(SUITES))
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            let list = text.split("cases! {").nth(1)?.split('}').next()?.to_owned();
            Some((list.split('"').nth(1)?.to_owned(), list))
        })
        .collect();
    let named = |page: &Page| {
        let spans = page.spans().into_iter().filter_map(|span| span.split_once("::"));
        let ours = spans.filter(|(topic, trial)| lists.iter().any(|(t, _)| t == topic) && !trial.is_empty());
        ours.map(|(topic, trial)| (topic.to_owned(), trial.to_owned())).collect::<Vec<_>>()
    };
    let all: Vec<_> = pages.iter().flat_map(named).collect();
    let exists = |topic: &str, trial: &str| {
        let words = lists.iter().filter(|(t, _)| t == topic);
        words.flat_map(|(_, list)| list.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|w| w == trial)
    };
    let missing = all.iter().filter(|(topic, trial)| !exists(topic, trial));
    (all.len(), missing.map(|(topic, trial)| format!("{topic}::{trial}")).collect())
}

/// The metrics in the code, and those that begin a row of a table.
pub(crate) fn metrics(page: &Page) -> (BTreeSet<String>, BTreeSet<String>) {
    let code = fs::read_to_string(root().join(MEASURES)).unwrap();
    let quoted = code.split('"').skip(1).step_by(2).filter(|text| text.starts_with("aftercommit_"));
    let rows = page.text.lines().filter_map(|line| line.strip_prefix("| `aftercommit_"));
    let rows = rows.filter_map(|row| Some(format!("aftercommit_{}", row.split('`').next()?)));
    (quoted.map(str::to_owned).collect(), rows.collect())
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}
