//! The facade's promise: each feature builds alone, and a dependent that takes one compiles no other client.

use std::collections::BTreeSet;

use xtask::{Error, Result};

use super::cargo::{cargo, output};
use super::metadata::Package;

const FACADE: &str = "aftercommit";

/// Crates that talk to a product or a database, each for one feature.
const CLIENTS: &[&str] =
    &["lapin", "rdkafka", "pulsar", "tonic", "sqlx-postgres", "sqlx-mysql", "libsqlite3-sys"];

/// The clients that a feature brings; a feature without an entry brings none.
fn clients_of(feature: &str) -> &'static [&'static str] {
    match feature {
        "rabbitmq" => &["lapin"],
        "kafka" => &["rdkafka"],
        "pulsar" => &["pulsar"],
        "rocketmq" => &["tonic"],
        "postgres" | "postgres-tls" => &["sqlx-postgres"],
        "mysql" => &["sqlx-mysql"],
        "sqlite" | "sqlqueue" => &["libsqlite3-sys"],
        _ => &[],
    }
}

/// The facade's features, without `default`.
pub(crate) fn features(packages: &[Package]) -> Result<Vec<&str>> {
    let facade = packages.iter().find(|p| p.name == FACADE);
    let facade = facade.ok_or_else(|| Error::new(format!("no package {FACADE} in this workspace")))?;
    Ok(facade.features.iter().map(String::as_str).filter(|f| *f != "default").collect())
}

/// Builds the facade with one feature, or with none.
pub(crate) fn build(feature: Option<&str>) -> Result<()> {
    let mut check = cargo(&["check", "--quiet", "--package", FACADE, "--no-default-features"]);
    if let Some(feature) = feature {
        check.args(["--features", feature]);
    }
    output(&mut check).map(drop)
}

/// Compares the clients compiled for one feature, or for none, with those that belong to it.
pub(crate) fn check_clients(feature: Option<&str>) -> Result<()> {
    let mut tree = cargo(&["tree", "--package", FACADE, "--no-default-features", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    if let Some(feature) = feature {
        tree.args(["--features", feature]);
    }
    let compiled = clients_in(&output(&mut tree)?);
    let expected: BTreeSet<_> = feature.map(clients_of).unwrap_or_default().iter().copied().collect();
    if compiled == expected {
        return Ok(());
    }
    Err(Error::new(format!(
        "feature {} must compile {expected:?}, compiles {compiled:?}",
        feature.unwrap_or("(none)")
    )))
}

fn clients_in(tree: &str) -> BTreeSet<&'static str> {
    let names: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    CLIENTS.iter().copied().filter(|client| names.contains(client)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_found_by_whole_names() {
        let tree = "aftercommit v0.1.0 (/x)\nlapin v4.12.3\nsqlx-postgres v0.9.0\npulsar-like v1.0.0\nlapin v4.12.3 (*)\n";
        assert_eq!(clients_in(tree).into_iter().collect::<Vec<_>>(), ["lapin", "sqlx-postgres"]);
    }

    #[test]
    fn every_client_belongs_to_a_feature() {
        let features = ["rabbitmq", "kafka", "pulsar", "rocketmq", "postgres", "mysql", "sqlite"];
        let owned: Vec<_> = features.iter().flat_map(|f| clients_of(f)).copied().collect();
        assert_eq!(owned, CLIENTS);
    }
}
