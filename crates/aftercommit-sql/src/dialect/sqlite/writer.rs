//! One writer per file and process.
//!
//! SQLite has one write lock per file. Writers of one process queue here, in order and for as long
//! as it takes, instead of polling for that lock until their busy timeout is over.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, PoisonError, Weak};

use tokio::sync::Mutex;

/// Held from begin to the end of the transaction.
pub(super) type Turns = Arc<Mutex<()>>;

static FILES: LazyLock<std::sync::Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>> = LazyLock::new(Default::default);

/// The queue of a file, the same for every pool and store of this process that writes to it.
pub(super) fn turns(file: &Path) -> Turns {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(turns) = files.get(&file).and_then(Weak::upgrade) {
        return turns;
    }
    files.retain(|_, turns| turns.strong_count() > 0);
    let turns = Turns::default();
    files.insert(file, Arc::downgrade(&turns));
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_queue_whatever_it_is_called() {
        let here = turns(Path::new("Cargo.toml"));
        let there = turns(Path::new("./src/../Cargo.toml"));
        assert!(Arc::ptr_eq(&here, &there));
        assert!(!Arc::ptr_eq(&here, &turns(Path::new("src/lib.rs"))));
    }
}
