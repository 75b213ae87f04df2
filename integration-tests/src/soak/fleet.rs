//! The consumer processes: started, hurt, started again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::world::World;
use super::{CONSUMER, QUEUES};

/// Consumers per queue.
const EACH: usize = 2;

pub(super) struct Fleet {
    slots: Vec<Mutex<Slot>>,
    logs: PathBuf,
}

struct Slot {
    command: Vec<String>,
    program: PathBuf,
    log: PathBuf,
    child: Child,
}

impl Fleet {
    pub(super) async fn start(program: &Path, world: &World) -> Self {
        let logs = tempfile::tempdir().expect("a folder for logs").keep();
        let database = world.database();
        let mut slots = Vec::new();
        for number in 0..EACH * QUEUES.len() {
            let queue = QUEUES[number % QUEUES.len()];
            let told = ["consumer", &database.url(), database.schema(), &world.amqp_url(), CONSUMER, queue];
            let command: Vec<_> = told.map(str::to_owned).to_vec();
            let log = logs.join(format!("consumer-{number}.log"));
            let child = launch(program, &command, &log);
            slots.push(Mutex::new(Slot { command, program: program.to_owned(), log, child }));
        }
        Self { slots, logs }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Kills a process and starts its successor.
    pub(super) async fn kill(&self, number: usize) {
        let mut slot = self.slots[number].lock().await;
        // It may have ended by itself, which the start below mends as well.
        let _ = slot.child.start_kill();
        slot.child.wait().await.expect("a child of ours");
        slot.start_again();
    }

    /// Freezes a process for a while. It is not waited for by others that are to be hurt.
    pub(super) async fn freeze(&self, number: usize, time: Duration) {
        let slot = self.slots[number].lock().await;
        if slot.signal(Signal::STOP) {
            tokio::time::sleep(time).await;
            slot.signal(Signal::CONT);
        }
    }

    /// Starts what has ended by itself: a consumer may give up when it cannot start, as a supervisor expects.
    pub(super) async fn mend(&self) {
        for slot in &self.slots {
            // One that is being hurt is looked after by who does it.
            let Ok(mut slot) = slot.try_lock() else { continue };
            if slot.child.try_wait().expect("a child of ours").is_some() {
                slot.start_again();
            }
        }
    }

    /// Asks all to stop; each must end well.
    pub(super) async fn stop(&self) {
        for slot in &self.slots {
            let mut slot = slot.lock().await;
            assert!(slot.signal(Signal::TERM), "it runs\n{}", slot.tail());
            let ended = timeout(Duration::from_secs(60), slot.child.wait()).await;
            let status = ended.expect("a graceful end within a minute").expect("a child of ours");
            assert!(status.success(), "{status}\n{}", slot.tail());
        }
    }

    /// Where the processes' logs are, until [`forget_logs`](Self::forget_logs).
    pub(super) fn logs(&self) -> &Path {
        &self.logs
    }

    /// Nobody needs them after a success.
    pub(super) fn forget_logs(&self) {
        // What stays is a few files in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.logs);
    }
}

impl Slot {
    fn start_again(&mut self) {
        self.child = launch(&self.program, &self.command, &self.log);
    }

    fn signal(&self, signal: Signal) -> bool {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

fn launch(program: &Path, command: &[String], log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).expect("a log");
    Command::new(program)
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .expect("the consumer's program")
}
