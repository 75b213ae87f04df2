use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::LabError;

/// The program that a run starts as its producer and consumers: called with this argument it must call
/// [`role`](crate::role).
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    argument: &'static str,
}

impl Program {
    /// This very program, to be called with an argument that leads to [`role`](crate::role).
    ///
    /// # Errors
    /// [`LabError::Failed`] when the system does not say which file it is.
    pub fn this(argument: &'static str) -> Result<Self, LabError> {
        let path = std::env::current_exe().map_err(LabError::doing("finding the program's own file"))?;
        Ok(Self { path, argument })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn argument(&self) -> &'static str {
        self.argument
    }

    pub(crate) fn digest(&self) -> Result<String, LabError> {
        let what = || format!("reading {}", self.path.display());
        let bytes = std::fs::read(&self.path).map_err(LabError::doing(what()))?;
        Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Something that took part, as the evidence card names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Component {
    /// Name and version, as it says itself.
    pub version: String,
    /// SHA-256: of the program's file, or of the client's published crate. A server does not tell its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Component {
    pub(crate) fn server(name: &str, version: &str) -> Self {
        Self { version: format!("{name} {version}"), sha256: None }
    }

    pub(crate) fn client((version, sha256): (&str, &str)) -> Self {
        Self { version: version.to_owned(), sha256: Some(sha256.to_owned()) }
    }
}
