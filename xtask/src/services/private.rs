//! What private nodes share: a folder of their own, and somebody who removes them when the test cannot.

use std::fs::{DirBuilder, Permissions, set_permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Doing, Result};

/// Waits for the end of its input, which comes when the test drops the node and also when the test process dies in
/// any way; then ends the processes of the folder's pid files and removes the folder. `$1` folder, `$2` signal.
///
/// A PostgreSQL that was killed leaves a small System V memory segment, named in its lock file.
const SCRIPT: &str = r#"
read -r _
for file in "$1"/*.pid; do
    read -r pid _ 2>/dev/null <"$file" || continue
    kill -s "$2" "$pid" 2>/dev/null
    tries=0
    while kill -s 0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    kill -s KILL "$pid" 2>/dev/null
done
segment=$(sed -n '7s/.* //p' "$1/data/postmaster.pid" 2>/dev/null)
[ -z "$segment" ] || ipcrm -m "$segment" 2>/dev/null
rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }
"#;

/// Ends a private node and removes its folder when dropped. A process of its own does it, so that it also happens
/// when the test is killed; a `PR_SET_PDEATHSIG` would not do, because it fires when the starting *thread* ends.
#[derive(Debug)]
pub(crate) struct Keeper(Child);

impl Keeper {
    pub(crate) fn over(folder: &Path, signal: &str) -> Result<Self> {
        let mut sh = Command::new("setsid");
        sh.args(["sh", "-c", SCRIPT, "aftercommit-keeper"]).arg(folder).arg(signal).current_dir("/");
        sh.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        sh.spawn().map(Self).doing(|| "starting the keeper of a private node".to_owned())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // A test that ends must find nothing of the node left; a failure here has nobody to be told to.
        let _ = self.0.wait();
    }
}

/// A new folder under the system's temporary one, which the user of the server may enter.
pub(crate) fn folder(product: &str) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("aftercommit-{product}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o755).create(&folder) {
            Ok(()) => {
                let what = || format!("opening {} to the server's user", folder.display());
                set_permissions(&folder, Permissions::from_mode(0o755)).doing(what)?;
                return Ok(folder);
            }
            // Left by a process of the same number that was ended together with its keeper.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).doing(|| format!("creating {}", folder.display())),
        }
    }
}
