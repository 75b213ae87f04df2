//! Settings under which a COMMIT can vanish, and servers that take no writes.

use aftercommit_conformance::store::StoreStage;
use aftercommit_inbox::{Fault, InboxStore, Session};
use aftercommit_sql::PgInboxOptions;
use xtask::services::postgres::{Node, NodeOptions, Shutdown};

use super::stage::postgres::{Stage, claimed};
use super::{billing, goes_on, id, shared, store, store_at};

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_forget_commits_are_refused_by_name() {
    let mut node = Node::start(NodeOptions::default()).unwrap();
    let stage = Stage::new(&node.url()).await.unwrap();
    store(&stage, stage.options()).await.check().await.unwrap();
    for (line, named) in [
        ("fsync = off", "fsync = off"),
        ("full_page_writes = off", "full_page_writes = off"),
        ("synchronous_commit = off", "synchronous_commit = off"),
        ("synchronous_commit = local\nsynchronous_standby_names = 'elsewhere'", "synchronous_commit = local"),
    ] {
        node.configure(NodeOptions { extra_config: line });
        node.restart(Shutdown::Fast).unwrap();
        let refused = stage.store(3).await.unwrap().check().await.unwrap_err();
        assert_eq!(refused.fault(), Fault::Unsafe, "{line}");
        assert!(refused.to_string().contains(named), "{line}: {refused}");
        let allowed = stage.options().allow_unsafe_commit(true);
        let allowed = stage.store_at(stage.server(), 3, allowed).await.unwrap();
        allowed.check().await.unwrap();
        goes_on(&allowed, line).await;
    }
    // `local` alone is as durable as `on` where nobody waits for standbys.
    node.configure(NodeOptions { extra_config: "synchronous_commit = local" });
    node.restart(Shutdown::Fast).unwrap();
    stage.store(3).await.unwrap().check().await.unwrap();
}

/// `local` is as durable as `on` until somebody waits for standbys.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_lowers_durability_is_found() {
    let mut node = Node::start(NodeOptions::default()).unwrap();
    let stage = Stage::new(&node.url()).await.unwrap();
    store(&stage, stage.options()).await;
    for (standbys, proved) in [("", true), ("elsewhere", false)] {
        // No COMMIT is sent here: with a standby that is not there it would wait for ever.
        let line = format!("synchronous_standby_names = '{standbys}'");
        node.configure(NodeOptions { extra_config: &line });
        node.restart(Shutdown::Fast).unwrap();
        let store = stage.store(3).await.unwrap();
        let mut session = claimed(&store, "1").await.unwrap();
        sqlx::raw_sql("SET LOCAL synchronous_commit = local").execute(session.connection()).await.unwrap();
        let proof = session.prove(&billing(), &[&id("1")]).await.map_err(|error| error.fault());
        assert_eq!(proof, if proved { Ok(()) } else { Err(Fault::Aborted) });
        session.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_role_that_forgets_commits_is_refused() {
    let stage = shared().await;
    let role = format!("forgetful_{}", std::process::id());
    stage.outside(&format!("CREATE ROLE {role} LOGIN SUPERUSER")).await.unwrap();
    stage.outside(&format!("ALTER ROLE {role} SET synchronous_commit = off")).await.unwrap();
    let store = store_at(&stage, stage.server().username(&role), stage.options()).await;
    let refused = store.check().await;
    store.pool().close().await;
    stage.outside(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}")).await.unwrap();
    assert_eq!(refused.unwrap_err().fault(), Fault::Unsafe);
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn read_only_transactions_are_said_at_start() {
    let stage = shared().await;
    store(&stage, stage.options()).await;
    let read_only = stage.server().options([("default_transaction_read_only", "on")]);
    let store = stage.store_at(read_only, 3, stage.options()).await.unwrap();
    let refused = store.check().await.unwrap_err();
    assert_eq!(refused.fault(), Fault::Unavailable);
    assert!(refused.to_string().contains("default_transaction_read_only"), "{refused}");
    stage.strike().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_said_at_start() {
    let node = Node::start(NodeOptions::default()).unwrap();
    let stage = Stage::new(&node.url()).await.unwrap();
    store(&stage, stage.options()).await;
    let data = node.sql("SHOW data_directory").unwrap();
    node.stop(Shutdown::Fast).unwrap();
    std::fs::write(format!("{}/standby.signal", data.trim()), "").unwrap();
    node.start_again().unwrap();
    let refused = stage.store(3).await.unwrap().check().await.unwrap_err();
    assert_eq!(refused.fault(), Fault::Unavailable);
    assert!(refused.to_string().contains("standby"), "{refused}");
}

#[tokio::test]
async fn an_encoding_that_lacks_letters_is_refused() {
    let stage = shared().await;
    let name = format!("latin_{}", std::process::id());
    let create =
        format!("CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    stage.outside(&create).await.unwrap();
    let store = store_at(&stage, stage.server().database(&name), PgInboxOptions::default()).await;
    let refused = store.check().await;
    store.pool().close().await;
    stage.outside(&format!("DROP DATABASE {name}")).await.unwrap();
    let refused = refused.unwrap_err();
    assert_eq!(refused.fault(), Fault::Schema);
    assert!(refused.to_string().contains("LATIN1"), "{refused}");
    stage.strike().await.unwrap();
}
