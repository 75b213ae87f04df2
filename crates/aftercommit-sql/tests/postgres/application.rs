//! In one database, pool and schema with the application.

use std::time::Duration;

use aftercommit_conformance::store::StoreStage;
use aftercommit_inbox::{Fault, InboxStore, Session};
use aftercommit_sql::{PgInbox, PgInboxOptions};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Row};

use super::{billing, claimed, goes_on, handle, id, shared, store, store_at};

#[tokio::test(flavor = "multi_thread")]
async fn migrations_leave_those_of_the_application_alone() {
    let stage = shared().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0001_orders.sql"), "CREATE TABLE orders (id integer PRIMARY KEY);")
        .unwrap();
    std::fs::write(folder.path().join("0002_lines.sql"), "CREATE TABLE lines (id integer PRIMARY KEY);")
        .unwrap();
    let theirs = Migrator::new(folder.path()).await.unwrap();
    let server = stage.server().options([("search_path", stage.schema())]);
    let one = async || {
        let pool = PgPoolOptions::new().max_connections(2).connect_with(server.clone()).await.unwrap();
        let inbox = PgInbox::with_options(pool.clone(), stage.options());
        let (ours, theirs) = tokio::join!(inbox.migrate(), theirs.run(&pool));
        ours.unwrap();
        theirs.unwrap();
        inbox.check().await.unwrap();
    };
    tokio::join!(one(), one(), one(), one());
    one().await;
    let versions =
        format!("SELECT array_agg(version ORDER BY version) FROM {}._sqlx_migrations", stage.schema());
    let row = sqlx::query(AssertSqlSafe(versions)).fetch_one(&mut stage.look().await.unwrap()).await.unwrap();
    assert_eq!(row.get::<Vec<i64>, _>(0), [1, 2]);
    stage.strike().await.unwrap();
}

/// One connection, borrowed by a session and by the application in turn.
#[tokio::test]
async fn connections_come_back_as_they_were() {
    let stage = shared().await;
    let store = store(&stage, stage.options()).await;
    let one = stage.store_at(stage.server(), 1, stage.options()).await.unwrap();
    let state = async || {
        let mut conn = one.pool().acquire().await.unwrap();
        let sql = "SELECT pg_backend_pid()::text || current_setting('statement_timeout') || \
            current_setting('lock_timeout') || current_setting('idle_in_transaction_session_timeout') || \
            current_setting('client_connection_check_interval') || \
            coalesce(current_setting('aftercommit.begun', true), '') || current_setting('transaction_isolation')";
        let state: String = sqlx::query_scalar(sql).fetch_one(&mut *conn).await.unwrap();
        state
    };
    let before = state().await;
    let mut session = one.open().await.unwrap();
    assert!(handle(&mut session, "1").await);
    session.record_failure(&billing(), &id("2"), "x").await.unwrap();
    session.begin().await.unwrap();
    session.claim(&billing(), &[&id("3")]).await.unwrap();
    session.rollback().await.unwrap();
    drop(session);
    assert_eq!(state().await, before, "the connection was closed, or changed");
    drop(store);
    stage.strike().await.unwrap();
}

/// H06: the application left a connection inside a transaction. BEGIN is only a warning there.
#[tokio::test]
async fn a_connection_left_in_a_transaction_is_not_used() {
    let stage = shared().await;
    store(&stage, stage.options()).await;
    let one = stage.store_at(stage.server(), 1, stage.options()).await.unwrap();
    let mut left = one.pool().acquire().await.unwrap();
    let leave =
        format!("BEGIN; INSERT INTO {}.effects (value) VALUES ('the application''s')", stage.schema());
    sqlx::raw_sql(AssertSqlSafe(leave)).execute(&mut *left).await.unwrap();
    drop(left);
    goes_on(&one, "1").await;
    assert_eq!(stage.effects().await.unwrap(), [""; 0], "the store committed what was not its own");
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn prefixes_keep_inboxes_apart() {
    let stage = shared().await;
    let first = store(&stage, stage.options()).await;
    let second = store(&stage, stage.options().table_prefix("other_").unwrap()).await;
    goes_on(&first, "1").await;
    goes_on(&second, "1").await;
    second.check().await.unwrap();
    let third =
        stage.store_at(stage.server(), 3, stage.options().table_prefix("third_").unwrap()).await.unwrap();
    let missing = third.check().await.unwrap_err();
    assert_eq!(missing.fault(), Fault::Schema);
    assert!(missing.to_string().contains("third_"), "{missing}");
    stage.strike().await.unwrap();
}

/// Rights to create are needed only where something is to be created.
#[tokio::test]
async fn a_role_without_rights_to_create_can_run() {
    let stage = shared().await;
    store(&stage, stage.options()).await;
    let role = format!("modest_{}", std::process::id());
    let grant = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {{s}} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{s}} TO {role}"
    );
    stage.outside(&grant).await.unwrap();
    let modest = store_at(&stage, stage.server().username(&role), stage.options()).await;
    modest.check().await.unwrap();
    let mut session = modest.open().await.unwrap();
    assert!(handle(&mut session, "1").await);
    session.record_failure(&billing(), &id("1"), "x").await.unwrap();
    session.forget_attempts(&billing(), &id("1")).await.unwrap();
    drop(session);
    modest.pool().close().await;
    let elsewhere = stage.server().username(&role);
    let options = PgInboxOptions::default().schema("not_allowed").unwrap();
    let refused = stage.store_at(elsewhere, 1, options).await.unwrap();
    assert_eq!(refused.migrate().await.unwrap_err().fault(), Fault::Refused);
    refused.pool().close().await;
    stage.outside(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn a_right_that_is_missing_is_said_at_start() {
    let stage = shared().await;
    store(&stage, stage.options()).await;
    let role = format!("poor_{}", std::process::id());
    let grant = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {{s}} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{s}} TO {role}; \
         REVOKE DELETE ON {{s}}.inbox_attempts FROM {role}"
    );
    stage.outside(&grant).await.unwrap();
    let poor = stage.store_at(stage.server().username(&role), 2, stage.options()).await.unwrap();
    let refused = poor.check().await;
    poor.pool().close().await;
    stage.outside(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    let refused = refused.unwrap_err();
    assert_eq!(refused.fault(), Fault::Schema);
    assert!(refused.to_string().contains("GRANT DELETE ON"), "{refused}");
    stage.strike().await.unwrap();
}

/// H01: by our own migration, whatever the database's default is.
#[tokio::test]
async fn keys_are_compared_by_bytes_in_every_database() {
    let stage = shared().await;
    store(&stage, stage.options()).await;
    let sql = "SELECT count(*) FROM information_schema.columns WHERE table_schema = $1 \
        AND column_name IN ('consumer_name', 'message_id') AND collation_name = 'C'";
    let keys: i64 = sqlx::query_scalar(sql)
        .bind(stage.schema())
        .fetch_one(&mut stage.look().await.unwrap())
        .await
        .unwrap();
    assert_eq!(keys, 4);
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn unnamed_statements_do_the_same() {
    let stage = shared().await;
    let store = store(&stage, stage.options().named_statements(false)).await;
    let mut session = store.open().await.unwrap();
    for text in ["1", "2"] {
        assert!(handle(&mut session, text).await);
        assert!(!handle(&mut session, text).await);
    }
    let named: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%inbox%'")
            .persistent(false)
            .fetch_one(session.connection())
            .await
            .unwrap();
    assert_eq!(named, 0);
    drop(session);
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn secrets_are_in_no_error() {
    const SECRET: &str = "hunter2";
    for url in [
        format!("postgres://user:{SECRET}@127.0.0.1:1/none"),
        format!("postgres://user:{SECRET}@127.0.0.1:port/none"),
        format!("postgres://user:{SECRET}@127.0.0.1:1/none?sslmode={SECRET}"),
        format!("{SECRET}://"),
    ] {
        let error =
            tokio::time::timeout(Duration::from_secs(60), PgInbox::connect(&url)).await.unwrap().unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains(SECRET), "{text}");
    }
    let stage = shared().await;
    let store = stage.store_at(stage.server().password(SECRET), 3, stage.options()).await.unwrap();
    store.migrate().await.unwrap();
    let session = claimed(&store, "1").await.unwrap();
    let text = format!("{store:?} {session:?}");
    assert!(!text.contains(SECRET), "{text}");
    drop(session);
    stage.strike().await.unwrap();
}
