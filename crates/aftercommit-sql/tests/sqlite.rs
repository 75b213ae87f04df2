//! What holds on SQLite beside the store suite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod stage;

use std::path::Path;
use std::time::{Duration, Instant};

use aftercommit_conformance::store::{Act, StoreStage};
use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{Fault, InboxStore, Session};
use aftercommit_sql::{SqliteInbox, SqliteInboxOptions, SqliteSession};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use stage::sqlite::{Stage, safe, store_at};

fn billing() -> ConsumerName {
    ConsumerName::new("billing").unwrap()
}

async fn claim(session: &mut SqliteSession, text: &str) -> MessageId {
    let id = MessageId::new(text).unwrap();
    assert_eq!(session.claim(&billing(), &[&id]).await.unwrap(), [true]);
    id
}

async fn finish(session: &mut SqliteSession, id: &MessageId) {
    session.prove(&billing(), &[id]).await.unwrap();
    session.commit().await.unwrap();
}

async fn here() -> Stage {
    Stage::new(&std::env::temp_dir()).await.unwrap()
}

async fn opened(file: &Path) -> SqliteInbox {
    let store = SqliteInbox::open(file, SqliteInboxOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    store
}

#[tokio::test]
async fn what_it_opens_is_safe() {
    let stage = here().await;
    let store = opened(&stage.file()).await;
    store.check().await.unwrap();
    let missing =
        SqliteInbox::open(stage.file().join("nowhere"), SqliteInboxOptions::default()).await.unwrap_err();
    assert_eq!(missing.fault(), Fault::Unavailable);
    assert!(missing.to_string().contains("cannot be opened"), "{missing}");
}

/// Without any busy timeout: what keeps them apart is the process's own queue.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_one_process_queue_whatever_pool_they_have() {
    let stage = here().await;
    // Stays open: whoever closes a file as the last one locks it as a whole for a moment.
    let _open = opened(&stage.file()).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let impatient = safe(&stage.file()).busy_timeout(Duration::ZERO);
        sessions.push(store_at(impatient, 2).open().await.unwrap());
    }
    let lane = async |lane: usize, mut session: SqliteSession| {
        for number in 0..25 {
            session.begin().await.unwrap();
            let id = claim(&mut session, &format!("{lane}-{number}")).await;
            stage.act(session.connection(), Act::Effect(id.as_str())).await.unwrap();
            finish(&mut session, &id).await;
            session.record_failure(&billing(), &id, "x").await.unwrap();
        }
    };
    let mut session = || sessions.pop().unwrap();
    tokio::join!(lane(0, session()), lane(1, session()), lane(2, session()), lane(3, session()));
    assert_eq!(stage.effects().await.unwrap().len(), 100);
}

/// H09: another process is stood for by a connection that is not the store's.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_waited_for_and_then_a_conflict() {
    let stage = here().await;
    opened(&stage.file()).await;
    let mut other = stage.look().await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let impatient = SqliteInboxOptions::default().busy_timeout(Duration::from_millis(200));
    let store = SqliteInbox::open(stage.file(), impatient).await.unwrap();
    let mut session = store.open().await.unwrap();
    let start = Instant::now();
    assert_eq!(session.begin().await.unwrap_err().fault(), Fault::Conflict);
    assert!(start.elapsed() >= Duration::from_millis(190), "it did not wait");
    session.rollback().await.unwrap();
    let counted = session.record_failure(&billing(), &MessageId::new("1").unwrap(), "x").await.unwrap_err();
    assert_eq!(counted.fault(), Fault::Conflict);
    // It stays usable, and gets the lock when the other one is done.
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    session.begin().await.unwrap();
    let id = claim(&mut session, "1").await;
    finish(&mut session, &id).await;
}

#[tokio::test]
async fn a_full_disk_and_a_file_without_rights_are_said_and_cost_no_attempt() {
    let stage = here().await;
    let store = opened(&stage.file()).await;
    let mut session = store.open().await.unwrap();
    session.begin().await.unwrap();
    claim(&mut session, "1").await;
    sqlx::raw_sql("PRAGMA max_page_count = 1").execute(session.connection()).await.unwrap();
    let grow = "INSERT INTO effects (value) VALUES (hex(zeroblob(1000000)))";
    let full = sqlx::raw_sql(grow).execute(session.connection()).await.unwrap_err();
    assert_eq!(store.classify(&full), Some(Fault::Unavailable), "{full}");
    session.discard();

    let read_only = store_at(safe(&stage.file()).read_only(true), 2);
    let refused = read_only.check().await.unwrap_err();
    assert_eq!(refused.fault(), Fault::Unavailable);
    assert!(refused.to_string().contains("read-only"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_leave_those_of_the_application_alone() {
    let stage = here().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0001_orders.sql"), "CREATE TABLE orders (id INTEGER PRIMARY KEY);")
        .unwrap();
    let theirs = Migrator::new(folder.path()).await.unwrap();
    let store = store_at(safe(&stage.file()), 4);
    for _ in 0..2 {
        store.migrate().await.unwrap();
        theirs.run(store.pool()).await.unwrap();
    }
    store.check().await.unwrap();
    let versions: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations").fetch_all(store.pool()).await.unwrap();
    assert_eq!(versions, [1]);
}

/// The hooks that guard a session must not guard the application.
#[tokio::test]
async fn the_applications_own_transactions_commit() {
    let stage = here().await;
    let store = store_at(safe(&stage.file()), 1);
    store.migrate().await.unwrap();
    let mut session = store.open().await.unwrap();
    session.begin().await.unwrap();
    let id = claim(&mut session, "1").await;
    finish(&mut session, &id).await;
    drop(session);
    let mut transaction = store.pool().begin().await.unwrap();
    sqlx::raw_sql("INSERT INTO effects (value) VALUES ('own')").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(stage.effects().await.unwrap(), ["own"]);
}

#[tokio::test]
async fn unsafe_files_run_when_that_is_wanted() {
    let memory = SqliteConnectOptions::new().filename(":memory:");
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect_with(memory).await.unwrap();
    let refused = SqliteInbox::new(pool.clone());
    refused.migrate().await.unwrap();
    assert_eq!(refused.check().await.unwrap_err().fault(), Fault::Unsafe);
    let allowed = SqliteInboxOptions::default().allow_unsafe_commit(true);
    SqliteInbox::with_options(pool, allowed).check().await.unwrap();
}
