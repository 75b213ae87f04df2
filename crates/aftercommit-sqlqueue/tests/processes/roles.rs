//! What the processes do.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_conformance::faults::{Fault, FaultyBroker, Script, Seam, Side};
use aftercommit_core::{Broker as _, Failure, Message, SettleError};
use aftercommit_inbox::{Consumer, Handled, Handler};
use aftercommit_sql::{SqliteInbox, SqliteInboxOptions};
use aftercommit_sqlqueue::SqlQueue;
use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;

use crate::disks;
use crate::world::{config, subscription};

/// The variable that names the role.
pub(crate) const ROLE: &str = "AFTERCOMMIT_SQLQUEUE_ROLE";

/// Plays a role, and panics where it cannot.
pub(crate) fn play(role: &str, arguments: &[String]) {
    let paths: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match (role, paths.as_slice()) {
            ("worker", [file, inbox]) => worker(file.clone(), inbox.clone(), Script::record()).await,
            ("hesitant", [file, inbox]) => {
                let script = Script::record().at(Seam::Ack, Side::Before, 0, Fault::Delay);
                worker(file.clone(), inbox.clone(), script).await;
            }
            ("holder", [file, _]) => holder(file.clone()).await,
            ("maker", [file]) => maker(file.clone()).await,
            ("on-a-full-disk", [folder]) => disks::on_a_full_disk(folder).await,
            ("on-a-read-only-disk", [folder]) => disks::on_a_read_only_disk(folder).await,
            other => panic!("no such role: {other:?}"),
        }
    });
}

struct Business;

#[async_trait]
impl Handler<SqliteInbox> for Business {
    async fn handle(&self, db: &mut SqliteConnection, message: &Message) -> Result<Handled, Failure> {
        let id = String::from_utf8_lossy(message.id.as_deref().unwrap_or_default()).into_owned();
        sqlx::query("INSERT INTO effects (id) VALUES (?1)").bind(id).execute(&mut *db).await?;
        Ok(Handled::Applied)
    }
}

/// A real consumer. Ends by being killed; a delay of its script ends when it is told.
async fn worker(file: PathBuf, inbox: PathBuf, script: Script) {
    let queue = Arc::new(SqlQueue::connect(config(&file)).await.unwrap());
    let store = SqliteInbox::open(inbox, SqliteInboxOptions::default()).await.unwrap();
    let broker = Arc::new(FaultyBroker::new(queue, script.clone()));
    let running = Consumer::new(store, Business).max_batch(20).start(broker, subscription()).await.unwrap();
    println!("ready");
    let hesitating = async {
        script.delayed().await;
        println!("committed");
        told().await;
        script.release();
        // The point behind the call: it was answered.
        while !script.trace().iter().any(|point| (point.seam, point.side) == (Seam::Ack, Side::After)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("settled");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = running.ended() => panic!("the consumer ended: {ended:?}"),
        () = hesitating => {}
    }
}

/// Takes one message, is frozen, and finds out what became of it.
async fn holder(file: PathBuf) {
    let queue = SqlQueue::connect(config(&file)).await.unwrap();
    let mut source = queue.source(&subscription()).await.unwrap();
    let delivery = source.recv(1).await.unwrap().into_iter().next().unwrap();
    println!("holding");
    told().await;
    while !delivery.is_lost() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    #[expect(clippy::disallowed_methods, reason = "this is what must not settle anything")]
    let answer = delivery.into_acker().ack().await;
    assert!(matches!(answer, Err(SettleError::Lost { .. })), "{answer:?}");
    println!("lost");
}

async fn maker(file: PathBuf) {
    told().await;
    let queue = SqlQueue::connect(config(&file)).await.unwrap();
    queue.declare(&subscription()).await.unwrap();
    println!("made");
}

/// Waits for a line.
async fn told() {
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    line.await.unwrap().expect("a line").unwrap();
}
