//! One queue file and one inbox, seen from the process that tests.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use aftercommit_core::{Broker as _, Destination, Message, Outgoing, Subscription};
use aftercommit_sql::{SqliteInbox, SqliteInboxOptions};
use aftercommit_sqlqueue::{Config, SqlQueue};
use rustix::process::Signal;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::roles::ROLE;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const VISIBILITY: Duration = Duration::from_secs(1);

pub(crate) fn config(file: &Path) -> Config {
    Config::at(file).unwrap().with_visibility(VISIBILITY).unwrap()
}

pub(crate) fn subscription() -> Subscription {
    Subscription::new("billing", "orders").unwrap()
}

pub(crate) struct World {
    folder: TempDir,
    pub(crate) queue: SqlQueue,
    looking: tokio::sync::Mutex<SqliteConnection>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let queue = SqlQueue::connect(config(&folder.path().join("queue.db"))).await.unwrap();
        queue.declare(&subscription()).await.unwrap();
        let inbox = folder.path().join("inbox.db");
        SqliteInbox::open(&inbox, SqliteInboxOptions::default()).await.unwrap().migrate().await.unwrap();
        let looking = SqliteConnectOptions::new().filename(&inbox).busy_timeout(Duration::from_secs(20));
        let mut looking = looking.connect().await.unwrap();
        // No unique key: it would hide an inbox that does not work.
        sqlx::raw_sql("CREATE TABLE effects (id TEXT NOT NULL)").execute(&mut looking).await.unwrap();
        Self { folder, queue, looking: tokio::sync::Mutex::new(looking) }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("queue.db")
    }

    fn arguments(&self) -> [PathBuf; 2] {
        [self.file(), self.folder.path().join("inbox.db")]
    }

    /// Publishes messages with these numbers as ids.
    pub(crate) async fn publish(&self, numbers: Range<usize>) {
        let publisher = self.queue.publisher().await.unwrap();
        let to = Destination::new("").with_routing_key("orders");
        let sends = numbers.map(|number| {
            let message = Message::new("x").with_id(number.to_string());
            publisher.publish(Outgoing::new(to.clone(), message))
        });
        for answer in futures_util::future::join_all(sends).await {
            answer.unwrap();
        }
    }

    pub(crate) async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.looking.lock().await).await.unwrap()
    }

    pub(crate) async fn effects(&self) -> i64 {
        self.number("SELECT count(*) FROM effects").await
    }

    pub(crate) async fn until_effects(&self, least: i64) {
        until(&format!("{least} effects"), async || self.effects().await >= least).await;
    }

    pub(crate) async fn until_empty(&self) {
        until("an empty queue", async || self.queue.depth("orders").await.unwrap().total() == 0).await;
    }

    /// One effect for each of the ids `0`, `1`, …, no attempt spent, nothing given up on.
    pub(crate) async fn each_once(&self, count: i64) {
        assert_eq!(self.effects().await, count, "effects");
        assert_eq!(self.number("SELECT count(DISTINCT id) FROM effects").await, count, "different effects");
        assert_eq!(self.number("SELECT count(*) FROM inbox_attempts").await, 0, "attempts");
        assert_eq!(self.queue.depth("orders.billing.dead").await.unwrap().total(), 0, "dead letters");
    }

    /// Stops a process outside a write to the queue: one that is frozen inside holds the lock until it is continued.
    pub(crate) async fn freeze(&self, process: &Process) {
        let impatient = SqliteConnectOptions::new().filename(self.file()).busy_timeout(Duration::ZERO);
        until("a moment without a write", async || {
            process.signal(Signal::STOP);
            let mut conn = impatient.connect().await.unwrap();
            let free = sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut conn).await.is_ok();
            conn.close().await.unwrap();
            if !free {
                process.signal(Signal::CONT);
            }
            free
        })
        .await;
    }

    pub(crate) fn start(&self, role: &str) -> Process {
        Process::start(role, &self.arguments())
    }
}

/// A process in a role. Killed when it is dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    said: Lines<BufReader<ChildStdout>>,
    ears: ChildStdin,
}

impl Process {
    pub(crate) fn start(role: &str, arguments: &[PathBuf]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let command = command.env(ROLE, role).args(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let ears = child.stdin.take().unwrap();
        Self { child, said, ears }
    }

    /// Waits until it says this.
    pub(crate) async fn says(&mut self, wanted: &str) {
        let heard = async {
            while let Some(line) = self.said.next_line().await.unwrap() {
                if line == wanted {
                    return;
                }
            }
            panic!("it ended and did not say {wanted:?}");
        };
        timeout(PATIENCE, heard).await.unwrap_or_else(|_| panic!("it did not say {wanted:?}"));
    }

    /// Lets it go on where it waits for a line.
    pub(crate) async fn tell(&mut self) {
        self.ears.write_all(b"\n").await.unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
