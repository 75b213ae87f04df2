//! Every `cargo …` that a reader is told to type.

use std::collections::BTreeMap;
use std::fs;

use crate::pages::{Page, root};

/// How many commands there are, and what is wrong with them.
pub(crate) fn check(pages: &[Page]) -> (usize, Vec<String>) {
    let packages = packages();
    let all: Vec<_> =
        pages.iter().flat_map(|page| commands(page).into_iter().map(move |c| (page, c))).collect();
    let wrong = all.iter().filter_map(|(page, command)| {
        let words: Vec<_> = command.split_whitespace().collect();
        let what = judge(&words, &packages).err()?;
        Some(format!("{}: {command}: {what}", page.path))
    });
    (all.len(), wrong.collect())
}

fn commands(page: &Page) -> Vec<&str> {
    let blocks = page.blocks("console").into_iter().flat_map(str::lines);
    let spans = page.spans().into_iter();
    blocks.chain(spans).map(str::trim).filter(|text| text.starts_with("cargo ")).collect()
}

/// Folders of the workspace's packages by name.
fn packages() -> BTreeMap<String, String> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| format!("crates/{}", entry.unwrap().file_name().into_string().unwrap()));
    let folders = crates.chain(["examples", "integration-tests", "xtask"].map(str::to_owned));
    let named = folders.filter_map(|folder| {
        let manifest = manifest(&folder)?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some((name.trim_matches('"').to_owned(), folder))
    });
    named.collect()
}

fn manifest(folder: &str) -> Option<String> {
    fs::read_to_string(root().join(folder).join("Cargo.toml")).ok()
}

fn judge(words: &[&str], packages: &BTreeMap<String, String>) -> Result<(), String> {
    let ours: Vec<_> = words.iter().copied().take_while(|word| *word != "--").collect();
    let option =
        |name: &str| ours.iter().position(|word| *word == name).and_then(|at| ours.get(at + 1)).copied();
    let folder = match option("-p") {
        None => None,
        Some(name) => Some(packages.get(name).ok_or_else(|| format!("no package {name}"))?.as_str()),
    };
    match ours.get(1..).unwrap_or_default() {
        ["xtask", "services", action, ..] if !["up", "down", "status"].contains(action) => {
            Err(format!("no action {action}"))
        }
        ["xtask", command, ..] => {
            let commands = fs::read_to_string(root().join("xtask/src/commands/mod.rs")).unwrap();
            let known = commands.contains(&format!("\"{command}\" =>"));
            if known {
                target(folder, "tests", option("--test"))
            } else {
                Err(format!("no command {command}"))
            }
        }
        ["run", ..] if folder == Some("crates/aftercommit-cli") => {
            // What stands behind `--` is parsed by the program's own tests.
            features_exist("crates/aftercommit-cli", option("--features").unwrap_or_default())
        }
        ["run", ..] => {
            let (Some("examples"), Some(example)) = (folder, option("--example")) else {
                return Err(
                    "only examples of aftercommit-examples and the program aftercommit-cli are known here"
                        .into(),
                );
            };
            target(folder, "examples", Some(example))?;
            features(example, option("--features").unwrap_or_default())
        }
        _ => Err("not a command that is known here".into()),
    }
}

fn target(folder: Option<&str>, kind: &str, name: Option<&str>) -> Result<(), String> {
    let (Some(folder), Some(name)) = (folder, name) else { return Ok(()) };
    let at = root().join(folder).join(kind);
    let there = at.join(format!("{name}.rs")).exists() || at.join(name).join("main.rs").exists();
    if there { Ok(()) } else { Err(format!("nothing called {name} in {folder}/{kind}")) }
}

fn features_exist(folder: &str, given: &str) -> Result<(), String> {
    let manifest = manifest(folder).unwrap_or_default();
    for feature in given.split(',').filter(|feature| !feature.is_empty()) {
        if !manifest.lines().any(|line| line.starts_with(&format!("{feature} = ["))) {
            return Err(format!("no feature {feature}"));
        }
    }
    Ok(())
}

/// The features must exist, and must be those that the example requires.
fn features(example: &str, given: &str) -> Result<(), String> {
    features_exist("examples", given)?;
    let manifest = manifest("examples").unwrap_or_default();
    let entry = manifest.split(&format!("name = \"{example}\"\n")).nth(1);
    let required = entry.and_then(|rest| rest.lines().next()?.strip_prefix("required-features = "));
    let lacking = required.into_iter().flat_map(|list| list.split('"').skip(1).step_by(2));
    match lacking.into_iter().find(|feature| !given.split(',').any(|given| given == *feature)) {
        Some(feature) => Err(format!("{example} needs the feature {feature}")),
        None => Ok(()),
    }
}
