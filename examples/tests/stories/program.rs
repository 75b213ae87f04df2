use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
use std::process::{Child, Stdio};
use std::time::SystemTime;

const HELP: &str = "run `cargo xtask test -p aftercommit-examples`, which builds the examples too";

/// `cargo test` builds the examples beside the tests, but `cargo test --test …` leaves them as they are.
fn path(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(example);
    let built = modified(&path).unwrap_or_else(|| panic!("there is no {}: {HELP}", path.display()));
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["examples", "src", "src/story"] {
        for source in fs::read_dir(package.join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let is_newer = source.is_file() && modified(&source).is_some_and(|changed| changed > built);
            assert!(!is_newer, "{} is newer than the program {example}: {HELP}", source.display());
        }
    }
    path
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// The URL of a queue that no earlier run has used, in the build's own folder.
#[cfg(feature = "sqlqueue")]
pub(crate) fn queue_file() -> String {
    format!("sqlqueue:{}/stories-{}.db", env!("CARGO_TARGET_TMPDIR"), uuid::Uuid::new_v4().simple())
}

/// Runs an example: whether it says that all went well, its output, its log.
pub(crate) fn run(example: &str, arguments: &[&str]) -> (bool, String, String) {
    // Databases that nobody named stay in the build's own folder.
    let mut command = Command::new(path(example));
    let ended = command.args(arguments).env("TMPDIR", env!("CARGO_TARGET_TMPDIR")).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.success(), text(ended.stdout), text(ended.stderr))
}

/// Runs an example that must succeed; its output.
pub(crate) fn tell(example: &str, arguments: &[&str]) -> String {
    let (ok, told, log) = run(example, arguments);
    assert!(ok, "{example} failed; if a server is missing: `cargo xtask services up`\n{told}\n{log}");
    told
}

/// The number behind a name at the beginning of a line.
pub(crate) fn figure(told: &str, name: &str) -> u64 {
    let line = told.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no figure {name:?} in\n{told}"))
}

/// A program that runs until it is interrupted.
#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
pub(crate) struct Background(Child);

#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
impl Background {
    pub(crate) fn start(example: &str, arguments: &[&str], environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(path(example));
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// `INT` is Ctrl-C, `TERM` how service managers ask; it must shut down in good order.
    pub(crate) fn end(mut self, signal: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success(), "the program did not end in good order");
    }
}

#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
impl Drop for Background {
    fn drop(&mut self) {
        // Has ended already, unless the test failed before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
