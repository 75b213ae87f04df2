//! `cargo xtask matrix`: every promise of docs/guarantees.md on every product with every database.

mod promises;
mod results;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use xtask::{Error, Result};

use super::cargo::{cargo, output, root};
use super::{servers, setup};
use results::Results;

/// Columns, in the order of the table.
const PRODUCTS: &[&str] = &["memory", "sqlqueue", "rabbitmq"];
const DATABASES: &[&str] = &["sqlite", "postgres"];
/// Products that processes of their own can share, which the crash lab needs.
const IN_THE_LAB: &[&str] = &["sqlqueue", "rabbitmq"];

const GUARANTEES: &str = "docs/guarantees.md";
const MATRIX: &str = "docs/matrix.md";

/// What was found out.
#[derive(Debug, Default)]
struct Found {
    brokers: BTreeMap<&'static str, Results>,
    stores: BTreeMap<&'static str, Results>,
    pairs: BTreeMap<(&'static str, &'static str), Results>,
    /// The lab's figures, or why there are none.
    crashes: BTreeMap<(&'static str, &'static str), Result<String>>,
}

/// Runs the suites and the crash lab, and writes docs/matrix.md. It is written whatever came out; a failure fails the
/// command.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    if !args.is_empty() {
        return Err(Error::new("usage: cargo xtask matrix"));
    }
    setup::run(&[])?;
    let file = root().join(GUARANTEES);
    let text = fs::read_to_string(&file).map_err(|e| Error::new(format!("reading {GUARANTEES}: {e}")))?;
    let promises = promises::read(&text);
    if promises.is_empty() {
        return Err(Error::new(format!("{GUARANTEES} has no table of promises with trials")));
    }
    let found = find_out()?;
    let (page, good) = table::write(&promises, &found);
    fs::write(root().join(MATRIX), page).map_err(|e| Error::new(format!("writing {MATRIX}: {e}")))?;
    println!(
        "matrix: {MATRIX} is written; {}",
        if good { "everything holds" } else { "SOMETHING FAILED: see there" }
    );
    Ok(good)
}

fn find_out() -> Result<Found> {
    let mut found = Found::default();
    for &product in PRODUCTS {
        found.brokers.insert(product, suite(&format!("aftercommit-{product}"), "conformance")?);
    }
    for &database in DATABASES {
        found.stores.insert(database, suite("aftercommit-sql", &format!("store_{database}"))?);
    }
    for &product in PRODUCTS {
        for &database in DATABASES {
            let test = format!("inbox_{product}_{database}");
            found.pairs.insert((product, database), suite("aftercommit-integration-tests", &test)?);
            if IN_THE_LAB.contains(&product) {
                found.crashes.insert((product, database), crash(product, database));
            }
        }
    }
    Ok(found)
}

fn suite(package: &str, test: &str) -> Result<Results> {
    println!("matrix: {package}, {test}");
    let mut command = cargo(&["test", "--quiet", "--all-features", "--package", package, "--test", test]);
    servers::provide(&mut command)?;
    // Its exit code says what the lines say one by one.
    let ran = command.stderr(Stdio::inherit()).output();
    let ran = ran.map_err(|e| Error::new(format!("starting the tests of {package}: {e}")))?;
    let results = Results::read(&String::from_utf8_lossy(&ran.stdout));
    if results.is_empty() {
        return Err(Error::new(format!("{package}, {test}: no trial ran")));
    }
    Ok(results)
}

/// The reference experiment of the crash lab, by the program itself.
fn crash(product: &str, database: &str) -> Result<String> {
    println!("matrix: lab {product} consumer-crash with {database}");
    let mut lab = cargo(&["run", "--quiet", "--package", "aftercommit-cli", "--all-features", "--", "lab"]);
    lab.args([product, "consumer-crash", "--json"]);
    servers::provide(&mut lab)?;
    let urls = urls(&lab);
    let mut pass = |option: &str, variable: &str| {
        let url = urls.get(variable).cloned();
        lab.args(url.iter().flat_map(|url| [option, url.as_str()]));
    };
    if product == "rabbitmq" {
        pass("--broker", "AFTERCOMMIT_RABBITMQ_URL");
    }
    if database == "postgres" {
        pass("--database", "AFTERCOMMIT_POSTGRES_URL");
    }
    table::figures(&output(&mut lab)?)
}

fn urls(command: &Command) -> BTreeMap<String, String> {
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect()
}
