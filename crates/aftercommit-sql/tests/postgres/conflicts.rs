//! Transactions that cannot both be right, and what COMMIT says about it.

use std::time::Duration;

use aftercommit_conformance::store::StoreStage;
use aftercommit_inbox::{Fault, InboxStore, Session};

use super::stage::postgres::claimed;
use super::{billing, goes_on, id, shared, store, store_at};

/// H07: raised by COMMIT itself, after the proof.
#[tokio::test]
async fn a_serialization_failure_at_commit_is_a_conflict() {
    let stage = shared().await;
    let serializable = stage.server().options([("default_transaction_isolation", "serializable")]);
    let store = store_at(&stage, serializable, stage.options()).await;
    stage.outside("CREATE TABLE {s}.hot (owner integer, amount integer)").await.unwrap();
    let read = format!("SELECT count(*) FROM {}.hot", stage.schema());
    let write = format!("INSERT INTO {}.hot VALUES (1, 1)", stage.schema());
    let (mut first, mut second) = (claimed(&store, "1").await.unwrap(), claimed(&store, "2").await.unwrap());
    for session in [&mut first, &mut second] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(read.clone())).fetch_all(session.connection()).await.unwrap();
    }
    for session in [&mut first, &mut second] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(write.clone())).execute(session.connection()).await.unwrap();
    }
    second.prove(&billing(), &[&id("2")]).await.unwrap();
    first.prove(&billing(), &[&id("1")]).await.unwrap();
    first.commit().await.unwrap();
    let refused = second.commit().await.unwrap_err();
    assert_eq!(refused.fault(), Fault::Conflict, "{refused:?}");
    second.rollback().await.unwrap();
    assert!(super::handle(&mut second, "2").await, "what conflicted was committed");
    drop((first, second));
    stage.strike().await.unwrap();
}

/// Counters are counted whatever isolation the application prefers.
#[tokio::test]
async fn counting_has_no_conflicts_where_everything_is_serializable() {
    let stage = shared().await;
    let serializable = stage.server().options([("default_transaction_isolation", "serializable")]);
    let store = store_at(&stage, serializable, stage.options()).await;
    let lane = async || {
        let mut session = store.open().await.unwrap();
        for _ in 0..50 {
            session.record_failure(&billing(), &id("1"), "x").await.unwrap();
            session.record_start(&billing(), &id("1")).await.unwrap();
        }
    };
    tokio::join!(lane(), lane(), lane());
    let rows = stage.attempts().await.unwrap();
    assert_eq!((rows[0].failures, rows[0].starts), (150, 150));
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn a_deadlock_of_handlers_is_a_conflict_of_one() {
    let stage = shared().await;
    let store = store(&stage, stage.options()).await;
    stage.outside("CREATE TABLE {s}.hot (k integer PRIMARY KEY, n integer); INSERT INTO {s}.hot VALUES (1, 0), (2, 0)")
        .await
        .unwrap();
    let update =
        |k: u8| sqlx::AssertSqlSafe(format!("UPDATE {}.hot SET n = n + 1 WHERE k = {k}", stage.schema()));
    let (mut first, mut second) = (claimed(&store, "1").await.unwrap(), claimed(&store, "2").await.unwrap());
    sqlx::raw_sql(update(1)).execute(first.connection()).await.unwrap();
    sqlx::raw_sql(update(2)).execute(second.connection()).await.unwrap();
    let (one, other) = {
        let one = sqlx::raw_sql(update(2)).execute(first.connection());
        let other = sqlx::raw_sql(update(1)).execute(second.connection());
        tokio::join!(one, other)
    };
    let error = [one, other].into_iter().find_map(Result::err).expect("nobody deadlocked");
    assert_eq!(store.classify(&error), Some(Fault::Conflict), "{error}");
    drop((first, second));
    stage.strike().await.unwrap();
}

#[tokio::test]
async fn waiting_too_long_for_a_claim_is_a_conflict_and_for_a_row_an_attempt() {
    let stage = shared().await;
    let impatient = stage.options().lock_timeout(Duration::from_millis(100)).unwrap();
    let store = store(&stage, impatient).await;
    let first = claimed(&store, "1").await.unwrap();
    let mut second = store.open().await.unwrap();
    second.begin().await.unwrap();
    let waited = second.claim(&billing(), &[&id("1")]).await.unwrap_err();
    assert_eq!(waited.fault(), Fault::Conflict);
    second.rollback().await.unwrap();
    second.begin().await.unwrap();
    let lock = format!("INSERT INTO {}.inbox_messages VALUES ('billing', '1')", stage.schema());
    let handlers = sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(second.connection()).await.unwrap_err();
    assert_eq!(store.classify(&handlers), None, "{handlers}");
    drop((first, second));
    stage.strike().await.unwrap();
}

/// An own code of an application's deferred trigger is a refusal: calling it unknown would run the
/// message for ever.
#[tokio::test]
async fn any_code_raised_at_commit_is_a_refusal_unless_it_may_mean_an_outage() {
    let stage = shared().await;
    let store = store(&stage, stage.options()).await;
    stage
        .outside(
            "CREATE TABLE {s}.raised (code text); \
             CREATE FUNCTION {s}.raising() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = NEW.code; END $$; \
             CREATE CONSTRAINT TRIGGER raising AFTER INSERT ON {s}.raised DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION {s}.raising()",
        )
        .await
        .unwrap();
    for (code, fault) in [
        ("ZZ001", Fault::Refused),
        ("P0001", Fault::Refused),
        ("23505", Fault::Refused),
        ("22012", Fault::Refused),
        ("44000", Fault::Refused),
        ("40001", Fault::Conflict),
        ("40P01", Fault::Conflict),
        ("40003", Fault::Unknown),
        ("08006", Fault::Unknown),
        ("53100", Fault::Unknown),
        ("57014", Fault::Unknown),
        ("58030", Fault::Unknown),
        ("XX000", Fault::Unknown),
    ] {
        let mut session = claimed(&store, code).await.unwrap();
        let raise = format!("INSERT INTO {}.raised VALUES ('{code}')", stage.schema());
        sqlx::raw_sql(sqlx::AssertSqlSafe(raise)).execute(session.connection()).await.unwrap();
        session.prove(&billing(), &[&id(code)]).await.unwrap();
        let refused = session.commit().await.unwrap_err();
        assert_eq!(refused.fault(), fault, "{code}: {refused:?}");
        session.discard();
        goes_on(&store, code).await;
    }
    stage.strike().await.unwrap();
}
