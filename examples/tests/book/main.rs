//! README and book against the code: what they link to, name and quote must be there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod commands;
mod links;
mod names;
mod pages;

use pages::{Page, pages, root};

const CONSUMER: &str = "examples/examples/consumer.rs";

#[test]
fn the_readme_quotes_the_consumer_byte_for_byte_in_25_lines() {
    let code = std::fs::read_to_string(root().join(CONSUMER)).unwrap();
    let readme = Page::read("README.md");
    let blocks = readme.blocks("rust");
    assert_eq!(blocks, [code.as_str()], "README.md has one block of Rust, and it is {CONSUMER}");
    assert!(code.lines().count() <= 25, "{} lines", code.lines().count());
}

#[test]
fn relative_links_resolve() {
    let (found, broken) = links::check(&pages());
    assert!(found > 30, "only {found} links: are they still written like this?");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn commands_exist() {
    let (found, wrong) = commands::check(&pages());
    assert!(found > 10, "only {found} commands: are they still written like this?");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn trials_exist() {
    let (found, missing) = names::trials(&pages());
    assert!(found > 25, "only {found} trials: are they still written like this?");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_metric_is_explained_and_no_other() {
    let (code, book) = names::metrics(&Page::read("docs/operating.md"));
    assert!(code.len() > 10, "{code:?}");
    assert_eq!(code, book);
}

#[test]
fn every_record_of_a_decision_is_listed() {
    let list = Page::read("docs/adr/README.md");
    let records = pages().into_iter().filter(|page| page.path.starts_with("docs/adr/0"));
    for record in records {
        let name = record.path.rsplit('/').next().unwrap();
        assert!(list.text.contains(&format!("({name})")), "docs/adr/README.md does not list {name}");
    }
}

/// The README's first command must need nothing but a C compiler.
#[test]
fn the_first_command_builds_no_client_of_a_server() {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args([
        "tree",
        "--package",
        "aftercommit-examples",
        "--edges",
        "normal,dev,build",
        "--prefix",
        "none",
    ]);
    let tree = cargo.current_dir(root()).output().unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let packages: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(packages.contains(&"libsqlite3-sys"), "{tree}");
    for client in ["lapin", "sqlx-postgres", "sqlx-mysql", "ring"] {
        assert!(!packages.contains(&client), "{client} would be built");
    }
}
