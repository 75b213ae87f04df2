//! Server processes: started detached, remembered by pid *and* start time, so that a pid file left by a killed
//! machine never points at somebody else's process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Doing, Error, Result};
use crate::wait;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pid: i32,
    /// Boot id and start time in ticks since boot.
    started: String,
}

impl Process {
    /// The process that has this pid now; `None` when there is none, or only an unreaped corpse.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // The command name may hold blanks and parentheses: fields are counted from its closing one.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?;
        let threads = fields.nth(16)?;
        let ticks = fields.nth(1)?;
        // A killed process with threads is a corpse before the last of them has let go of its ports.
        let is_corpse = state == "X" || (state == "Z" && threads == "1");
        (!is_corpse).then(|| Self { pid, started: format!("{}:{ticks}", boot.trim()) })
    }

    /// All processes that work in this folder, as PostgreSQL's do in its data.
    pub(crate) fn in_folder(folder: &Path) -> Vec<Self> {
        let pids = fs::read_dir("/proc").into_iter().flatten();
        pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder))
            .filter_map(Self::of)
            .collect()
    }

    /// Reads a pid file; `None` unless that very process still runs.
    pub(crate) fn recorded(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        let recorded = Self { pid: pid.parse().ok()?, started: started.to_owned() };
        recorded.is_alive().then_some(recorded)
    }

    pub(crate) fn record(&self, file: &Path) -> Result<()> {
        fs::write(file, format!("{} {}\n", self.pid, self.started))
            .doing(|| format!("writing {}", file.display()))
    }

    pub(crate) fn forget(file: &Path) -> Result<()> {
        match fs::remove_file(file) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(e).doing(|| format!("removing {}", file.display()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now == *self)
    }

    /// Sends the signal and waits until the process is gone.
    pub(crate) fn end(&self, signal: Signal, limit: Duration) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        let pid = Pid::from_raw(self.pid).ok_or_else(|| Error::new("pid 0"))?;
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(e) => return Err(Error::new(format!("signalling process {}: {e}", self.pid))),
        }
        wait::until(&format!("process {} to end", self.pid), limit, wait::SILENT, || Ok(!self.is_alive()))
    }

    /// Ends the process with `signal`, or hard when it takes longer than `limit`.
    pub(crate) fn end_or_kill(&self, signal: Signal, limit: Duration) -> Result<()> {
        self.end(signal, limit).or_else(|_| self.end(Signal::KILL, Duration::from_secs(10)))
    }
}

/// A command for a long-running server: a session of its own, so that neither Ctrl-C nor the end of the terminal
/// reaches it, and another user where the server refuses root. The pid stays that of the spawned child, because
/// `setsid` and `setpriv` replace themselves.
pub(crate) fn detached(program: impl AsRef<OsStr>, user: Option<&str>) -> Command {
    let mut command = Command::new("setsid");
    if let Some(user) = user {
        command.args(as_user(user));
    }
    command.arg(program).current_dir("/");
    command
}

/// A command that runs to its end as another user.
pub(crate) fn command(program: impl AsRef<OsStr>, user: Option<&str>) -> Command {
    let Some(user) = user else {
        return Command::new(program);
    };
    let [setpriv, options @ ..] = as_user(user);
    let mut command = Command::new(setpriv);
    command.args(options).arg(program).current_dir("/");
    command
}

fn as_user(user: &str) -> [String; 5] {
    let owned = |s: &str| s.to_owned();
    [
        owned("setpriv"),
        format!("--reuid={user}"),
        format!("--regid={user}"),
        owned("--init-groups"),
        owned("--reset-env"),
    ]
}

/// Starts a [`detached`] command with its output in `log`.
pub(crate) fn spawn(mut command: Command, log: &Path) -> Result<Process> {
    // The log of the run before tells why it ended.
    let _ = fs::rename(log, log.with_extension("log.1"));
    let out = File::create(log).doing(|| format!("creating {}", log.display()))?;
    let err = out.try_clone().doing(|| "duplicating the log's handle".to_owned())?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = command.spawn().doing(|| format!("starting {command:?}"))?;
    let pid = i32::try_from(child.id()).doing(|| "reading the pid".to_owned())?;
    let process = Process::of(pid);
    // Somebody has to reap the child while this program goes on (private nodes are killed and started many times).
    thread::spawn(move || child.wait());
    process.ok_or_else(|| Error::new(format!("{} ended at once:\n{}", log.display(), tail(log))))
}

/// Runs a command to its end; its output is the error's text when it fails.
pub(crate) fn run(mut command: Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .doing(|| format!("starting {}", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string();
    Err(Error::new(format!("{program} failed ({}): {text}{}", output.status, errors.trim_end())))
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    // RabbitMQ tells a crash in a hundred lines, the reason first.
    const LINES: usize = 150;
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    format!("--- end of {} ---\n{}\n---", log.display(), shown.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_counts_only_for_the_very_process() {
        let file = std::env::temp_dir().join(format!("aftercommit-process-{}.pid", std::process::id()));
        let me = Process::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        me.record(&file).unwrap();
        assert_eq!(Process::recorded(&file), Some(me.clone()));
        // The same pid after a reboot.
        Process { started: "another boot:1".to_owned(), ..me }.record(&file).unwrap();
        assert_eq!(Process::recorded(&file), None);
        Process::forget(&file).unwrap();
        Process::forget(&file).unwrap();
        assert_eq!(Process::recorded(&file), None);
    }

    #[test]
    fn a_corpse_is_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        process.end(Signal::KILL, Duration::from_secs(10)).unwrap();
        assert!(!process.is_alive());
        child.wait().unwrap();
    }

    #[test]
    fn a_failed_command_says_what_it_printed() {
        let mut sh = command("sh", None);
        sh.args(["-c", "echo out; echo no >&2; exit 3"]);
        let text = run(sh).unwrap_err().to_string();
        assert!(text.contains("exit status: 3") && text.contains("out") && text.contains("no"), "{text}");
    }
}
