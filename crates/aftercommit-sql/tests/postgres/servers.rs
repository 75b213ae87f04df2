//! Servers that restart, crash, or wait for a client that is gone.

use std::time::Duration;

use aftercommit_conformance::proxy::Proxy;
use aftercommit_conformance::store::{Act, StoreStage};
use aftercommit_inbox::{Fault, InboxStore, Session};
use xtask::services::postgres::{Node, NodeOptions, Shutdown};

use super::stage::postgres::{Stage, claimed};
use super::{billing, goes_on, handle, id, shared, store, store_at, within};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_ends_the_session_and_nothing_else() {
    let node = Node::start(NodeOptions::default()).unwrap();
    let stage = Stage::new(&node.url()).await.unwrap();
    let store = store(&stage, stage.options()).await;
    goes_on(&store, "before").await;
    for how in [Shutdown::Fast, Shutdown::Immediate] {
        let text = format!("{how:?}");
        let mut open = claimed(&store, &text).await.unwrap();
        let mut at_rest = store.open().await.unwrap();
        node.restart(how).unwrap();
        let handlers = stage.act(open.connection(), Act::Effect("lost")).await.unwrap_err();
        assert_eq!(store.classify(handlers.as_ref()), Some(Fault::Unavailable), "{handlers}");
        let ours = open.prove(&billing(), &[&id(&text)]).await.unwrap_err();
        assert_eq!(ours.fault(), Fault::Unavailable);
        assert_eq!(at_rest.begin().await.unwrap_err().fault(), Fault::Unavailable);
        drop((open, at_rest));
        within(SOON, "a session after the restart", goes_on(&store, &text)).await;
    }
    let mut session = store.open().await.unwrap();
    assert!(!handle(&mut session, "before").await, "a commit was forgotten");
    assert_eq!(stage.effects().await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_forgets_no_commit() {
    let node = Node::start(NodeOptions::default()).unwrap();
    let stage = Stage::new(&node.url()).await.unwrap();
    let store = store(&stage, stage.options()).await;
    for round in 0..3 {
        let mut session = store.open().await.unwrap();
        for number in 0..20 {
            assert!(handle(&mut session, &format!("{round}-{number}")).await);
        }
        node.kill().unwrap();
        let away = store.open().await.unwrap_err();
        assert_eq!(away.fault(), Fault::Unavailable);
        node.start_again().unwrap();
        assert_eq!(stage.claims().await.unwrap().len(), 20 * (round + 1));
    }
}

#[tokio::test]
async fn a_frozen_consumer_loses_its_claim_to_its_successor() {
    let stage = shared().await;
    let impatient = stage.options().idle_in_transaction_timeout(Duration::from_secs(1)).unwrap();
    let store = store(&stage, impatient).await;
    let mut frozen = claimed(&store, "1").await.unwrap();
    let mut successor = store.open().await.unwrap();
    let took_over = within(SOON, "the claim of the frozen consumer", handle(&mut successor, "1")).await;
    assert!(took_over, "the frozen consumer's claim was taken for handled");
    // It wakes up. Its slowness is its handler's affair, and costs an attempt.
    let handlers = stage.act(frozen.connection(), Act::Effect("late")).await.unwrap_err();
    assert_eq!(store.classify(handlers.as_ref()), None, "{handlers}");
    frozen.prove(&billing(), &[&id("1")]).await.unwrap_err();
    assert_eq!(stage.effects().await.unwrap(), [""; 0]);
    drop((frozen, successor));
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn the_last_statement_after_a_long_pause_is_an_attempt() {
    let stage = shared().await;
    let impatient = stage.options().idle_in_transaction_timeout(Duration::from_millis(100)).unwrap();
    let store = store(&stage, impatient).await;
    let mut slow = claimed(&store, "1").await.unwrap();
    let ended = async {
        while stage.open_transactions().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(SOON, "the server ends the idle transaction", ended).await;
    assert_eq!(slow.prove(&billing(), &[&id("1")]).await.unwrap_err().fault(), Fault::Aborted);
    assert!(slow.rollback().await.is_err());
    drop(slow);
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn a_closed_connection_frees_its_claims_though_its_statement_runs() {
    let stage = shared().await;
    let store = store(&stage, stage.options()).await;
    let mut session = claimed(&store, "1").await.unwrap();
    let slow = sqlx::query("SELECT pg_sleep(25)").execute(session.connection());
    tokio::time::timeout(Duration::from_millis(200), slow).await.unwrap_err();
    session.discard();
    // Less than the lock timeout of ten seconds, which would show as a conflict.
    within(Duration::from_secs(8), "the claim of the discarded session", goes_on(&store, "1")).await;
    stage.strike().await.unwrap();
}

/// A network that swallows everything: neither side hears of the other's end.
#[tokio::test]
async fn a_call_without_an_answer_ends() {
    let stage = shared().await;
    let proxy =
        Proxy::start(std::net::SocketAddr::from(([127, 0, 0, 1], stage.server().get_port()))).unwrap();
    let options = stage.options().statement_timeout(Duration::from_millis(100)).unwrap();
    let through = stage.server().host("127.0.0.1").port(proxy.addr().port());
    let store = store_at(&stage, through, options).await;
    let (mut claiming, mut committing) =
        (claimed(&store, "1").await.unwrap(), claimed(&store, "2").await.unwrap());
    committing.prove(&billing(), &[&id("2")]).await.unwrap();
    proxy.blackhole();
    let (consumer, other) = (billing(), id("3"));
    let others = [&other];
    let claimed = claiming.claim(&consumer, &others);
    let (claimed, committed) =
        within(SOON, "both calls end", async { tokio::join!(claimed, committing.commit()) }).await;
    assert_eq!(claimed.unwrap_err().fault(), Fault::Unavailable);
    assert_eq!(committed.unwrap_err().fault(), Fault::Unknown);
    drop((claiming, committing));
    drop(proxy);
    stage.strike().await.unwrap();
}
