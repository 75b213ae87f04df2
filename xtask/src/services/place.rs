use std::env;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::{Doing, Error, Result};

/// Where one set of shared servers lives: a folder, and ports counted from a base.
///
/// | port | server |
/// |---|---|
/// | base + 32 | PostgreSQL |
/// | base + 72 | RabbitMQ, AMQP |
/// | base + 73 | RabbitMQ, management |
/// | base + 74 | RabbitMQ, Erlang distribution |
/// | base + 75 | RabbitMQ, epmd |
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
    base: u16,
}

/// The highest offset that a server may use.
const SPAN: u16 = 100;
/// Below the range from which the kernel takes the ports of outgoing connections, and beside those of `.ci/run`.
const DEFAULT_BASE: u16 = 25_400;

impl Place {
    /// Reads `AFTERCOMMIT_PORT_BASE` (25400 by default) and `AFTERCOMMIT_SERVICES_DIR`: the folder's parent, by default
    /// a folder per user under `/var/tmp`, which is a disk where `/tmp` may be memory, and which the user that
    /// PostgreSQL runs as can reach.
    ///
    /// # Errors
    ///
    /// When the base is not a number between 1024 and 65435.
    pub fn from_env() -> Result<Self> {
        let base = env::var("AFTERCOMMIT_PORT_BASE").ok();
        let parent = env::var_os("AFTERCOMMIT_SERVICES_DIR").filter(|dir| !dir.is_empty());
        Self::new(base.as_deref(), parent.map(PathBuf::from))
    }

    fn new(base: Option<&str>, parent: Option<PathBuf>) -> Result<Self> {
        let base = match base {
            None | Some("") => DEFAULT_BASE,
            Some(text) => {
                text.parse().ok().filter(|base| (1024..=u16::MAX - SPAN).contains(base)).ok_or_else(|| {
                    Error::new(format!("AFTERCOMMIT_PORT_BASE={text} is not in 1024..=65435"))
                })?
            }
        };
        let uid = rustix::process::geteuid().as_raw();
        let parent = parent.unwrap_or_else(|| PathBuf::from(format!("/var/tmp/aftercommit-services-{uid}")));
        let parent = std::path::absolute(&parent).doing(|| format!("resolving {}", parent.display()))?;
        Ok(Self { folder: parent.join(base.to_string()), base })
    }

    /// The port at an offset from the base.
    #[must_use]
    pub const fn port(&self, offset: u16) -> u16 {
        self.base + offset
    }

    /// The number that all ports are counted from.
    #[must_use]
    pub const fn base(&self) -> u16 {
        self.base
    }

    /// The folder of all servers of this place.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder if need be and takes its lock: two `services up` at once are one after the other.
    pub(crate) fn lock(&self) -> Result<File> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&self.folder)
            .doing(|| format!("creating {}", self.folder.display()))?;
        let owner = fs::metadata(&self.folder).doing(|| format!("reading {}", self.folder.display()))?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return Err(Error::new(format!(
                "{} belongs to another user: set AFTERCOMMIT_SERVICES_DIR",
                self.folder.display()
            )));
        }
        let file = self.folder.join("lock");
        let lock = File::create(&file).doing(|| format!("creating {}", file.display()))?;
        lock.lock().doing(|| format!("locking {}", file.display()))?;
        Ok(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted_from_the_base() {
        let place = Place::new(None, None).unwrap();
        assert_eq!((place.port(32), place.port(72)), (25_432, 25_472));
        let place = Place::new(Some("20000"), None).unwrap();
        assert_eq!((place.port(32), place.port(75)), (20_032, 20_075));
    }

    #[test]
    fn a_base_without_room_for_all_ports_is_refused() {
        for wrong in ["80", "65436", "65536", "-1", "many"] {
            let text = Place::new(Some(wrong), None).unwrap_err().to_string();
            assert!(text.contains(&format!("AFTERCOMMIT_PORT_BASE={wrong}")), "{text}");
        }
        Place::new(Some("65435"), None).unwrap();
    }

    #[test]
    fn two_bases_never_share_a_folder() {
        let folder = |base| Place::new(Some(base), Some(PathBuf::from("/x"))).unwrap().folder().to_owned();
        assert_eq!(folder("2000"), Path::new("/x/2000"));
        assert_ne!(folder("2000"), folder("3000"));
    }
}
