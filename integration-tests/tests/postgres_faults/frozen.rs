//! A consumer process that is frozen while it holds a claim.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use aftercommit_conformance::proxy::Proxy;
use aftercommit_core::{Message, Subscription};
use aftercommit_inbox::{Consumer, Handled, handler_fn};
use aftercommit_integration_tests::database::{Database, effect};
use aftercommit_integration_tests::until::{PATIENCE, until};
use aftercommit_rabbitmq::Config;
use aftercommit_sql::PgInbox;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnection;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::stage::{Stage, writes_a_row};

const NAME: &str = "frozen::a_frozen_process_does_not_hold_its_claim_for_ever";
const ROLE: &str = "AFTERCOMMIT_TEST_FROZEN";

/// The process is stopped between two statements. Its broker connection ends, so that the successor gets the message and
/// waits for the claim; the server ends the frozen transaction after its idle timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_process_does_not_hold_its_claim_for_ever() {
    if let Ok(role) = std::env::var(ROLE) {
        return be_frozen(&role).await;
    }
    let stage = Stage::new("frozen").await;
    let amqp = xtask::services::rabbitmq::url().unwrap();
    let port = amqp.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    let proxy = Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
    let behind = amqp.replace(&format!(":{port}/"), &format!(":{}/", proxy.addr().port()));
    let role = [&stage.db.url(), stage.db.schema(), &behind].join("\n");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();

    stage.queue.publish(["X"]).await;
    says(&mut lines, "holding").await;
    signal(&child, Signal::STOP);
    let successor = stage.start(stage.consumer(writes_a_row())).await;
    proxy.cut();
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND wait_event_type = 'Lock'",
        stage.db.schema()
    );
    until("the successor waits", PATIENCE, || async {
        if stage.db.number(&waits).await == 1 { Ok(()) } else { Err("nobody waits".to_owned()) }
    })
    .await;
    let idle =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = ";
    assert_eq!(stage.db.number(&format!("{idle}'{}'", stage.db.schema())).await, 1, "frozen, not dead");
    let one = ["X".to_owned()];
    stage.db.has_one_effect_each(&one, Duration::from_secs(10)).await;

    // It wakes up, goes on with a transaction that is no more, and gets its message again as a duplicate at most.
    signal(&child, Signal::CONT);
    says(&mut lines, "failed as it must").await;
    drop(child);
    stage.ends([successor], &one).await;
    stage.queue.has_dead_letters(0).await;
}

async fn says(lines: &mut Lines<BufReader<ChildStdout>>, what: &str) {
    let says = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(what) {
                return;
            }
        }
        panic!("the child ended before it said: {what}");
    };
    timeout(PATIENCE, says).await.expect(what);
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The second process: claims, says so, and writes again once the idle timeout is over.
async fn be_frozen(role: &str) {
    let [database, schema, amqp] = role.split('\n').collect::<Vec<_>>()[..] else { panic!("{role}") };
    let database = Database::existing(database, schema);
    let options = database.options().idle_in_transaction_timeout(IDLE).unwrap();
    let handler = handler_fn(|db: &mut PgConnection, message: &Message| {
        Box::pin(async move {
            effect(db, "X", "frozen").await?;
            println!("\nholding {:?}", message.id);
            // The clock of a stopped process goes on: awake, it has slept enough.
            tokio::time::sleep(IDLE * 2).await;
            let again = effect(db, "X", "awake").await;
            println!("\n{}", if again.is_err() { "failed as it must" } else { "went on" });
            again?;
            Ok(Handled::Applied)
        })
    });
    let broker = aftercommit_rabbitmq::connect(Config::new(amqp).unwrap()).await.unwrap();
    let consumer = Consumer::new(PgInbox::with_options(database.pool(6), options), handler);
    let subscription = Subscription::new(schema, schema).unwrap();
    consumer.run(broker, subscription, std::future::pending()).await.unwrap();
}

const IDLE: Duration = Duration::from_secs(2);
