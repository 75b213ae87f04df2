//! What a suite printed.

use std::collections::BTreeMap;

/// What came of a trial, over all variants that the suite ran it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// The product declares that it lacks what the trial is about.
    Absent(String),
    Failed,
}

/// The outcomes of one suite by `topic::trial`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Results(BTreeMap<String, Outcome>);

impl Results {
    pub(super) fn read(text: &str) -> Self {
        let mut results = Self::default();
        for (name, outcome) in text.lines().filter_map(line) {
            let worst = match (results.0.remove(&name), outcome) {
                (Some(Outcome::Failed), _) | (_, Outcome::Failed) => Outcome::Failed,
                (Some(Outcome::Absent(_)) | None, other) | (Some(other), Outcome::Absent(_)) => other,
                (Some(Outcome::Passed), Outcome::Passed) => Outcome::Passed,
            };
            results.0.insert(name, worst);
        }
        results
    }

    pub(super) fn get(&self, trial: &str) -> Option<&Outcome> {
        self.0.get(trial)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, outcome)| **outcome == Outcome::Failed).map(|(name, _)| name.as_str())
    }

    pub(super) fn passed(&self) -> usize {
        self.0.values().filter(|outcome| **outcome == Outcome::Passed).count()
    }

    /// Each reason once.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(|outcome| match outcome {
            Outcome::Absent(reason) => Some(reason.as_str()),
            Outcome::Passed | Outcome::Failed => None,
        })
    }
}

/// `test [absent: what, reason] variant::topic::trial   ... ok`
fn line(line: &str) -> Option<(String, Outcome)> {
    let (head, end) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let (kind, name) = match head.strip_prefix('[') {
        Some(rest) => rest.rsplit_once(']')?,
        None => ("", head),
    };
    let mut parts: Vec<_> = name.trim().rsplit("::").take(2).collect();
    parts.reverse();
    let outcome = match end.trim() {
        "ok" => Outcome::Passed,
        "ignored" => Outcome::Absent(kind.trim_start_matches("absent: ").to_owned()),
        _ => Outcome::Failed,
    };
    (parts.len() == 2).then(|| (parts.join("::"), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "running 5 tests\n\
        test                  quorum::once::twice ... ok\n\
        test                  classic::once::twice ... FAILED\n\
        test [absent: Cut, no [wire]] quorum::outage::cut    ... ignored\n\
        test [absent: Cut, no [wire]] outage::away ... ignored\n\
        test                  classic::outage::cut ... ok\n\
        test result: FAILED. 2 passed; 1 failed\n";

    #[test]
    fn the_worst_variant_counts_and_absence_only_where_no_variant_has_it() {
        let results = Results::read(TEXT);
        assert_eq!(results.get("once::twice"), Some(&Outcome::Failed));
        assert_eq!(results.get("outage::cut"), Some(&Outcome::Passed));
        assert_eq!(results.get("outage::away"), Some(&Outcome::Absent("Cut, no [wire]".to_owned())));
        assert_eq!((results.failed().count(), results.passed(), results.reasons().count()), (1, 1, 1));
    }

    #[test]
    fn nothing_is_read_from_other_lines() {
        assert!(Results::read("running 3 tests\ntest result: ok. 1 passed ... fine\n").is_empty());
    }
}
