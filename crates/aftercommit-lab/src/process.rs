//! A producer or consumer, seen by the lab that started it.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::role::Assignment;
use crate::{LabError, LogLine, Program};

/// How long a process may say nothing before it counts as stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running process. It is killed when this is dropped, and ends by itself when the lab is gone.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Its end tells the process that the lab is gone.
    _input: ChildStdin,
}

impl Process {
    pub(crate) async fn start(program: &Program, assignment: &Assignment) -> Result<Self, LabError> {
        let what = || format!("starting {}", program.path().display());
        let mut text = serde_json::to_vec(assignment).map_err(LabError::doing(what()))?;
        text.push(b'\n');
        let mut child = Command::new(program.path())
            .arg(program.argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C in a terminal goes to the lab alone, which then ends its processes.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(LabError::doing(what()))?;
        let lacks = || LabError::failed(format!("{}: it has no pipes", what()));
        let mut input = child.stdin.take().ok_or_else(lacks)?;
        let lines = BufReader::new(child.stdout.take().ok_or_else(lacks)?).lines();
        input.write_all(&text).await.map_err(LabError::doing(what()))?;
        Ok(Self { child, lines, _input: input })
    }

    /// The next line; `None` when there are no more.
    ///
    /// Cancel safe.
    pub(crate) async fn line(&mut self) -> Result<Option<LogLine>, LabError> {
        let read = self.lines.next_line().await.map_err(LabError::doing("reading a process's lines"))?;
        read.map(|text| text.parse()).transpose()
    }

    /// As [`line`](Self::line), with an end to the patience.
    pub(crate) async fn line_in_time(&mut self) -> Result<Option<LogLine>, LabError> {
        let late = |_| LabError::failed(format!("a process said nothing for {PATIENCE:?}: it was ended"));
        timeout(PATIENCE, self.line()).await.map_err(late)?
    }

    /// Asks it to end in good order.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself in the meantime.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Its exit code once it has ended; a signal counts from 128, as shells do.
    pub(crate) async fn exit_code(mut self) -> Result<i32, LabError> {
        use std::os::unix::process::ExitStatusExt;
        let late = |_| LabError::failed(format!("a process did not end within {PATIENCE:?}: it was ended"));
        let ended = timeout(PATIENCE, self.child.wait()).await.map_err(late)?;
        let status = ended.map_err(LabError::doing("waiting for a process"))?;
        Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
    }
}
