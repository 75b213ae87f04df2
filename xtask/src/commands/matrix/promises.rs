//! The promises, as docs/guarantees.md lists them.

/// A promise and the trials that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) what: String,
    pub(super) trials: Vec<String>,
}

/// The rows of tables whose last cell names trials, such as `` `once::applied_once_and_confirmed` ``. Rows that are shown
/// by something else are left out.
pub(super) fn read(page: &str) -> Vec<Promise> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Promise> {
    let (what, shown_by) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
    let trials: Vec<_> = shown_by.split('`').skip(1).step_by(2).filter(|name| is_trial(name)).collect();
    let trials: Vec<_> = trials.into_iter().map(str::to_owned).collect();
    (!trials.is_empty()).then(|| Promise { what: what.to_owned(), trials })
}

fn is_trial(name: &str) -> bool {
    let ours = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let part = |part: &str| !part.is_empty() && part.chars().all(ours);
    name.split_once("::").is_some_and(|(topic, trial)| part(topic) && part(trial))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_trials_are_promises() {
        let page = "# Title\n\n| promise | shown by |\n|---|---|\n| It holds | `a::b_c`, `d::e2` |\n\
                    | By a command | `cargo xtask test -- a::` |\n| word | meaning |\ntext `a::b` |\n| a setting | `Config::with_it` |\n";
        let promise =
            Promise { what: "It holds".to_owned(), trials: vec!["a::b_c".to_owned(), "d::e2".to_owned()] };
        assert_eq!(read(page), [promise]);
    }
}
