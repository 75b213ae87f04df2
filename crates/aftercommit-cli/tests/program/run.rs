//! Starting the program in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A home and a folder for temporary files that nobody else has.
pub(crate) struct Home(TempDir);

/// How a run of the program ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(home.path().join("tmp")).unwrap();
        Self(home)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aftercommit"));
        let unset = ["AFTERCOMMIT_BROKER_URL", "AFTERCOMMIT_DATABASE_URL", "XDG_DATA_HOME", "RUST_LOG"];
        unset.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.args(arguments).env("HOME", self.0.path()).env("TMPDIR", self.path("tmp"));
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let ended = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: ended.status.code().unwrap(), out: text(ended.stdout), err: text(ended.stderr) }
    }

    /// No temporary file is left, and no process that was told this folder for them.
    pub(crate) fn is_clean(&self) {
        let left: Vec<_> =
            fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "temporary files are left: {left:?}");
        assert_eq!(self.processes(), Vec::<String>::new(), "processes are left");
    }

    /// The processes of this home.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}", self.path("tmp").display());
        let is_ours =
            |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|v| v == mark.as_bytes());
        let all =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // A process that ends while it is looked at is no longer there, and one that has ended has no environment.
        let ours = all.filter(|pid| fs::read(format!("/proc/{pid}/environ")).is_ok_and(is_ours));
        ours.collect()
    }
}

impl Ended {
    /// Everything it said, for the texts of failures.
    pub(crate) fn all(&self) -> String {
        format!("exit code {}\n{}\n{}", self.code, self.out, self.err)
    }

    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "if a server is missing: `cargo xtask services up`\n{}", self.all());
        self
    }

    pub(crate) fn lines(&self, start: &str) -> Vec<&str> {
        self.out.lines().filter(|line| line.starts_with(start)).collect()
    }

    pub(crate) fn json(&self) -> Json {
        Json(serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.all())))
    }
}

/// One JSON object.
pub(crate) struct Json(serde_json::Value);

impl Json {
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("no number {name} in {}", self.0))
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_else(|| panic!("no text {name} in {}", self.0))
    }

    pub(crate) fn at(&self, pointer: &str) -> &serde_json::Value {
        self.0.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {}", self.0))
    }
}
