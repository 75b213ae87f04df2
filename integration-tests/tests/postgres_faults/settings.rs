//! A database whose COMMIT can vanish is refused, and the setting is named.

use aftercommit_inbox::{ConsumerError, Fault};
use aftercommit_integration_tests::database::Database;
use aftercommit_integration_tests::node;
use aftercommit_integration_tests::until::PATIENCE;

use crate::stage::{Stage, ids, writes_a_row};

async fn refused(stage: &Stage, db: &Database) -> String {
    let consumer = stage.consumer_on(db.inbox(), writes_a_row());
    let started = consumer.start(stage.queue.broker.clone(), stage.queue.subscription.clone()).await;
    let error = started.expect_err("it must not start");
    assert!(!error.is_retryable());
    let ConsumerError::Store(error) = error else { panic!("{error}") };
    assert_eq!(error.fault(), Fault::Unsafe, "{error}");
    error.to_string()
}

#[tokio::test]
async fn synchronous_commit_off_for_the_role_is_refused() {
    let stage = Stage::new("role").await;
    let role = format!("role_{}", stage.db.schema());
    stage
        .db
        .run(&format!("CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET synchronous_commit = off"))
        .await;
    let text = refused(&stage, &stage.db.with(|server| server.username(&role))).await;
    assert!(text.contains("synchronous_commit = off") && text.contains("ALTER ROLE"), "{text}");

    stage.db.run(&format!("ALTER ROLE {role} RESET synchronous_commit")).await;
    let mended = stage.db.with(|server| server.username(&role)).inbox();
    let running = stage.start(stage.consumer_on(mended, writes_a_row())).await;
    running.shut_down();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn fsync_off_and_synchronous_commit_off_of_the_server_are_refused() {
    let node = node::postgres("fsync = off\nfull_page_writes = off\nsynchronous_commit = off").await;
    let stage = Stage::on(&node.url(), "server").await;
    let text = refused(&stage, &stage.db).await;
    for setting in ["fsync = off", "full_page_writes = off", "synchronous_commit = off", "postgresql.conf"] {
        assert!(text.contains(setting), "{setting} is not named: {text}");
    }
}

/// Nobody's fault, and it holds for every message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn synchronous_commit_turned_off_while_running_pauses_and_is_named() {
    let node = node::postgres("").await;
    let stage = Stage::on(&node.url(), "lowered").await;
    let running = stage.start(stage.consumer(writes_a_row())).await;
    let ids = ids(30);
    stage.queue.publish(&ids[..10]).await;
    stage.db.has_one_effect_each(&ids[..10], PATIENCE).await;

    stage.db.run("ALTER SYSTEM SET synchronous_commit = off").await;
    stage.db.run("SELECT pg_reload_conf()").await;
    stage.queue.publish(&ids[10..]).await;
    stage.database_is(false, &running).await;
    let complaints = running.health().not_ready();
    assert!(complaints.iter().any(|it| it.reason.contains("synchronous_commit")), "{complaints:?}");

    stage.db.run("ALTER SYSTEM RESET synchronous_commit").await;
    stage.db.run("SELECT pg_reload_conf()").await;
    stage.database_is(true, &running).await;
    stage.ends_well([running], &ids).await;
}
