//! Who may depend on whom, and which words the core crates may not know.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::{Error, Result};

use super::cargo::root;
use super::metadata::Package;

const PRODUCTS: &[&str] = &["memory", "sqlqueue", "rabbitmq", "kafka", "pulsar", "rocketmq"];
const CLIENTS: &[&str] = &["lapin", "rdkafka", "pulsar", "tonic", "rocketmq", "sqlx", "rusqlite"];
/// What crates of the core may not mention, in code or prose.
const WORDS: &[&str] = &["lapin", "rdkafka", "pulsar", "rocketmq"];
const WORDLESS: &[&str] = &["crates/aftercommit-core", "crates/aftercommit-inbox"];

/// The crates of ours (without the prefix) that a crate of ours may depend on; `None` without a rule.
fn allowed(name: &str) -> Option<Vec<&'static str>> {
    let libraries = || {
        let own = ["", "core", "inbox", "outbox", "sql", "conformance"];
        PRODUCTS.iter().copied().chain(own).collect::<Vec<_>>()
    };
    let with = |more: &[&'static str]| Some(libraries().into_iter().chain(more.iter().copied()).collect());
    match name {
        "core" => Some(vec![]),
        "inbox" | "outbox" => Some(vec!["core"]),
        "sql" | "conformance" => Some(vec!["core", "inbox", "outbox"]),
        product if PRODUCTS.contains(&product) => Some(vec!["core"]),
        // The facade, and what stands on it.
        "" => Some(libraries().into_iter().filter(|l| !matches!(*l, "" | "conformance")).collect()),
        "examples" | "bench" | "lab" | "console" => with(&[]),
        "integration-tests" => with(&["lab"]),
        "cli" => with(&["console", "lab", "bench"]),
        _ => None,
    }
}

/// The clients of products and databases that a crate of ours may depend on; `None`: any.
fn allowed_clients(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "core" | "inbox" | "outbox" | "memory" => &[],
        "sqlqueue" => &["sqlx"],
        "rabbitmq" => &["lapin"],
        "kafka" => &["rdkafka"],
        "pulsar" => &["pulsar"],
        "rocketmq" => &["tonic"],
        _ => return None,
    })
}

/// The part of a package's name after `aftercommit-`: empty for the facade, `None` for strangers.
fn short(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("aftercommit")?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('-') }
}

/// All broken rules, a sentence each.
pub(crate) fn violations(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(violations_of).collect()
}

fn violations_of(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some(this) = short(name) else {
        let ours = package.needs.iter().filter(|need| short(need).is_some());
        return ours.map(|need| format!("{name} must not depend on {need}")).collect();
    };
    let Some(allowed) = allowed(this) else {
        return vec![format!(
            "{name} has no rule: say in xtask/src/commands/direction.rs what it may depend on"
        )];
    };
    let clients = allowed_clients(this);
    let stranger_is_wrong =
        |need: &str| CLIENTS.contains(&need) && clients.is_some_and(|c| !c.contains(&need));
    let wrong =
        |need: &&String| short(need).map_or(stranger_is_wrong(need), |other| !allowed.contains(&other));
    package.needs.iter().filter(wrong).map(|need| format!("{name} must not depend on {need}")).collect()
}

/// Mentions of products' clients where none may be, as `file:line: word`.
pub(crate) fn mentions() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in WORDLESS {
        for file in files(&root().join(folder))? {
            let text = fs::read(&file).map_err(|e| Error::new(format!("reading {}: {e}", file.display())))?;
            found.extend(mentions_in(&String::from_utf8_lossy(&text), &file));
        }
    }
    Ok(found)
}

fn mentions_in(text: &str, file: &Path) -> Vec<String> {
    let in_line = |(n, line): (usize, &str)| {
        let line = line.to_lowercase();
        let words = WORDS.iter().filter(move |word| line.contains(**word));
        words.map(move |word| format!("{}:{}: mentions {word}", file.display(), n + 1)).collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(in_line).collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).map_err(|e| Error::new(format!("reading {}: {e}", folder.display())))?;
    let mut all = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::metadata::parse;
    use super::*;

    /// Violations of one package with these dependencies, written `name` or `kind:name`.
    fn check(package: &str, needs: &[&str]) -> Vec<String> {
        let dependency = |need: &&str| {
            let (kind, name) = need
                .split_once(':')
                .map_or(("null".to_owned(), *need), |(kind, name)| (format!("\"{kind}\""), name));
            format!(r#"{{"name":"{name}","kind":{kind},"optional":true}}"#)
        };
        let needs: Vec<_> = needs.iter().map(dependency).collect();
        let json = format!(
            r#"{{"packages":[{{"name":"{package}","dependencies":[{}],"features":{{"a":[],"default":[]}}}}]}}"#,
            needs.join(",")
        );
        violations(&parse(&json).unwrap())
    }

    #[test]
    fn the_house_as_designed_breaks_no_rule() {
        for (package, needs) in [
            ("aftercommit-core", &["bytes"][..]),
            ("aftercommit-inbox", &["aftercommit-core", "tokio"]),
            ("aftercommit-sql", &["aftercommit-core", "aftercommit-inbox", "sqlx"]),
            ("aftercommit-rabbitmq", &["aftercommit-core", "lapin"]),
            ("aftercommit-sqlqueue", &["aftercommit-core", "sqlx"]),
            ("aftercommit-conformance", &["aftercommit-core", "aftercommit-inbox", "sqlx"]),
            ("aftercommit", &["aftercommit-inbox", "aftercommit-rabbitmq", "aftercommit-sql"]),
            ("aftercommit-cli", &["aftercommit", "aftercommit-lab"]),
            ("aftercommit-integration-tests", &["aftercommit", "aftercommit-conformance", "xtask", "lapin"]),
            ("xtask", &["serde_json"]),
        ] {
            assert_eq!(check(package, needs), Vec::<String>::new(), "{package}");
        }
    }

    #[test]
    fn a_dependency_in_the_wrong_direction_is_named() {
        for (package, need) in [
            ("aftercommit-core", "aftercommit-inbox"),
            ("aftercommit-core", "sqlx"),
            ("aftercommit-inbox", "aftercommit-sql"),
            ("aftercommit-inbox", "lapin"),
            ("aftercommit-inbox", "build:aftercommit-memory"),
            ("aftercommit-sql", "aftercommit-rabbitmq"),
            ("aftercommit-sql", "aftercommit"),
            ("aftercommit-rabbitmq", "aftercommit-inbox"),
            ("aftercommit-rabbitmq", "aftercommit-memory"),
            ("aftercommit-rabbitmq", "sqlx"),
            ("aftercommit-kafka", "lapin"),
            ("aftercommit-conformance", "aftercommit-sql"),
            ("aftercommit", "aftercommit-conformance"),
            ("aftercommit", "aftercommit-cli"),
            ("aftercommit-integration-tests", "aftercommit-cli"),
            ("xtask", "aftercommit-core"),
        ] {
            let name = need.rsplit(':').next().unwrap();
            assert_eq!(check(package, &[need]), [format!("{package} must not depend on {name}")]);
        }
    }

    #[test]
    fn dev_dependencies_are_free() {
        assert_eq!(
            check("aftercommit-rabbitmq", &["dev:aftercommit-inbox", "dev:sqlx"]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_crate_without_a_rule_is_named() {
        assert!(check("aftercommit-new", &[])[0].starts_with("aftercommit-new has no rule"));
    }

    #[test]
    fn words_are_found_in_any_case() {
        let found = mentions_in("fine\n// as Pulsar does\nuse lapin;", Path::new("a.rs"));
        assert_eq!(found, ["a.rs:2: mentions pulsar", "a.rs:3: mentions lapin"]);
    }
}
