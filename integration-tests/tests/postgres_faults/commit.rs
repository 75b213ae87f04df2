//! COMMIT was sent and the answer is lost: nobody knows, until the claim is made again.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use aftercommit_conformance::proxy::{Direction, Pattern, Proxy, Trigger};
use aftercommit_inbox::Running;
use aftercommit_integration_tests::node;
use aftercommit_integration_tests::until::{PATIENCE, until_true};
use aftercommit_sql::PgInbox;
use tokio::time::timeout;

use crate::stage::{Stage, ids, writes_a_row};

/// A simple query, from its type to its end.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The server's command tag.
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

struct Behind {
    stage: Stage,
    proxy: Proxy,
    running: Running,
}

async fn behind_a_proxy(name: &str) -> Behind {
    let node = node::common_postgres().await;
    let stage = Stage::on(&node.url(), name).await;
    let proxy = Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, node.port()))).unwrap();
    let db = stage.db.with(|server| server.port(proxy.addr().port()));
    // An answer that never comes is waited for a little longer than a statement may take.
    let options = stage.db.options().statement_timeout(Duration::from_millis(500)).unwrap();
    let inbox = PgInbox::with_options(db.pool(6), options);
    let running = stage.start(stage.consumer_on(inbox, writes_a_row())).await;
    Behind { stage, proxy, running }
}

async fn holds(behind: Behind, fault: Trigger) {
    let Behind { stage, proxy, running } = behind;
    let ids = ids(60);
    for part in ids.chunks(20) {
        stage.queue.publish(part).await;
    }
    timeout(PATIENCE, fault.fired()).await.expect("the fault happens");
    // The effect is there before its lane knows; told to stop now, it would give the message back undecided.
    let decided = || stage.outcomes("applied") + stage.outcomes("duplicate") == 60;
    until_true("all are decided", PATIENCE, decided).await;
    stage.ends_well([running], &ids).await;
    assert_eq!(stage.faults("unknown"), 1);
    assert_eq!(stage.outcomes("applied"), 60, "what we committed ourselves is no duplicate");
    drop(proxy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_cut_off_has_one_effect() {
    let behind = behind_a_proxy("answer").await;
    let fault = behind.proxy.cut_before(Direction::ToClient, Pattern::bytes(COMMITTED));
    holds(behind, fault).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrives_has_one_effect() {
    let behind = behind_a_proxy("arrival").await;
    let fault = behind.proxy.cut_before(Direction::ToServer, Pattern::bytes(COMMIT));
    holds(behind, fault).await;
}

/// The connection stays open and silent; the client has to stop waiting by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_never_comes_has_one_effect() {
    let behind = behind_a_proxy("silence").await;
    let fault = behind.proxy.swallow_answers_after(Pattern::bytes(COMMIT));
    holds(behind, fault).await;
}
