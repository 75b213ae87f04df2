//! What `cargo metadata` says about the packages of the workspace.

use serde_json::Value;
use xtask::{Error, Result};

use super::cargo::{cargo, output};

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Names of the packages it depends on in a build that others see: normal and build dependencies, optional ones
    /// too; no dev-dependencies.
    pub(crate) needs: Vec<String>,
    pub(crate) features: Vec<String>,
}

pub(crate) fn packages() -> Result<Vec<Package>> {
    let json = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    parse(&json)
}

pub(crate) fn parse(json: &str) -> Result<Vec<Package>> {
    let metadata: Value =
        serde_json::from_str(json).map_err(|e| Error::new(format!("reading cargo metadata: {e}")))?;
    let packages =
        metadata["packages"].as_array().ok_or_else(|| Error::new("cargo metadata without packages"))?;
    Ok(packages.iter().map(package).collect())
}

fn package(json: &Value) -> Package {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependencies = json["dependencies"].as_array().into_iter().flatten();
    let needs = dependencies.filter(|d| d["kind"] != "dev").map(|d| text(&d["name"])).collect();
    let features = json["features"].as_object().into_iter().flat_map(|f| f.keys().cloned()).collect();
    Package { name: text(&json["name"]), needs, features }
}
