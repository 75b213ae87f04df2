//! The Python programs in `foreign/`, which know nothing of this project.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// A program at work. Dropping it ends it.
#[derive(Debug)]
pub struct Script {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Script {
    /// Starts `foreign/NAME`.
    ///
    /// # Panics
    ///
    /// When there is no Python with pika; the text names the command that installs it.
    #[must_use]
    pub fn start(name: &str, args: &[&str]) -> Self {
        let python = xtask::python::with_pika().unwrap_or_else(|error| panic!("{error}"));
        let mut child = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign").join(name))
            .args(args)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { name: name.to_owned(), child, lines }
    }

    /// Reads lines until one is as wanted.
    ///
    /// # Panics
    ///
    /// When none comes in time.
    ///
    /// # Cancel safety
    ///
    /// Lines that were read are gone.
    pub async fn says(&mut self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let reading = async {
            while let Some(line) = self.lines.next_line().await.expect("UTF-8") {
                if wanted(&line) {
                    return line;
                }
            }
            panic!("{} ended before {what}", self.name);
        };
        timeout(limit, reading)
            .await
            .unwrap_or_else(|_| panic!("{}: {what}: not within {limit:?}", self.name))
    }

    /// Reads to the end, which must be a success.
    ///
    /// # Panics
    ///
    /// When it is none, or none in time, with the last lines.
    ///
    /// # Cancel safety
    ///
    /// Lines that were read are gone.
    pub async fn ends_well(mut self, limit: Duration) -> Vec<String> {
        let mut all = Vec::new();
        let reading = async {
            while let Some(line) = self.lines.next_line().await.expect("UTF-8") {
                all.push(line);
            }
            self.child.wait().await.expect("its exit code")
        };
        let ended = timeout(limit, reading).await;
        let last = || all[all.len().saturating_sub(30)..].join("\n");
        match ended {
            Ok(status) => assert!(status.success(), "{} failed ({status}):\n{}", self.name, last()),
            Err(_) => panic!("{} did not end within {limit:?}:\n{}", self.name, last()),
        }
        all
    }
}
