//! Transactions that PostgreSQL refuses to serialize: run again from the start, without an attempt.

use std::time::Duration;

use aftercommit_core::{Message, Subscription};
use aftercommit_inbox::{Handled, Handler, handler_fn};
use aftercommit_integration_tests::database::effect;
use aftercommit_integration_tests::queue::Queue;
use aftercommit_sql::PgInbox;
use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use crate::stage::{Stage, id, ids, writes_a_row};

/// Even messages lock the first row and then the second, odd ones the other way round.
fn locks_two_rows() -> impl Handler<PgInbox> {
    handler_fn(|db: &mut PgConnection, message: &Message| {
        Box::pin(async move {
            let even = id(message).ends_with(['0', '2', '4', '6', '8']);
            for row in if even { [1, 2] } else { [2, 1] } {
                sqlx::query("UPDATE hot SET n = n + 1 WHERE id = $1").bind(row).execute(&mut *db).await?;
                sqlx::query("SELECT pg_sleep(0.01)").execute(&mut *db).await?;
            }
            effect(db, id(message), "").await?;
            Ok(Handled::Applied)
        })
    })
}

const HOT: &str =
    "CREATE TABLE hot (id int PRIMARY KEY, n bigint NOT NULL); INSERT INTO hot VALUES (1, 0), (2, 0)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlocks_between_two_consumers_cost_no_attempt() {
    let stage = Stage::new("deadlock").await;
    stage.db.run(HOT).await;
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(stage.start(stage.consumer(locks_two_rows()).lanes(2).max_batch(2)).await);
    }
    let ids = ids(100);
    stage.queue.publish(&ids).await;
    stage.ends_well(running, &ids).await;
    assert!(stage.faults("conflict") > 0, "nothing happened that this test is about");
    assert_eq!(stage.db.number("SELECT min(n) + max(n) FROM hot").await, 200);
}

/// Each message reads both rows and writes one: fine alone, a write skew together. The server speaks English: Debian's
/// PostgreSQL has the translations, but the locales for `lc_messages` are not generated on this kind of machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h07_a_write_skew_on_hot_rows_costs_no_attempt() {
    let stage = Stage::new("skew").await;
    stage.db.run(HOT).await;
    let handler = || {
        handler_fn(|db: &mut PgConnection, message: &Message| {
            Box::pin(async move {
                let sum: i64 =
                    sqlx::query_scalar("SELECT sum(n)::bigint FROM hot").fetch_one(&mut *db).await?;
                let row = if id(message).ends_with(['0', '2', '4', '6', '8']) { 1 } else { 2 };
                sqlx::query("UPDATE hot SET n = n + 1 WHERE id = $1").bind(row).execute(&mut *db).await?;
                effect(db, id(message), &sum.to_string()).await?;
                Ok(Handled::Applied)
            })
        })
    };
    let strict = stage.db.with(|server| server.options([("default_transaction_isolation", "serializable")]));
    let mut running = Vec::new();
    for _ in 0..2 {
        let consumer = stage.consumer_on(strict.inbox(), handler()).lanes(2).max_batch(2);
        running.push(stage.start(consumer).await);
    }
    let ids = ids(200);
    stage.queue.publish(&ids).await;
    stage.ends_well(running, &ids).await;
    assert!(stage.faults("conflict") > 0, "nothing happened that this test is about");
    // Serial, as promised: each saw what all before it had written.
    let seen = stage.db.number("SELECT count(DISTINCT note) FROM effects").await;
    assert_eq!((seen, stage.db.number("SELECT sum(n)::bigint FROM hot").await), (200, 200));
}

/// A constraint trigger, checked at COMMIT, raises the code there: the first time as a serialization failure, the
/// second as a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h07_a_serialization_failure_raised_by_commit_itself_costs_no_attempt() {
    let stage = Stage::new("late").await;
    stage
        .db
        .run(
            "CREATE SEQUENCE tries; \
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE n bigint := nextval('tries'); BEGIN \
            IF n = 1 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END IF; \
            IF n = 2 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40P01'; END IF; RETURN NULL; END $$; \
            CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED \
            FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    let running = stage.start(stage.consumer(writes_a_row()).lanes(1)).await;
    let ids = ids(20);
    stage.queue.publish(&ids).await;
    stage.ends_well([running], &ids).await;
    assert_eq!(stage.faults("conflict"), 2);
    assert_eq!(stage.faults("unknown"), 0);
}

/// A short form of what the soak does for minutes: the same ids reach two instances in opposite order, in batches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_the_same_ids_in_opposite_order_do_not_deadlock() {
    let stage = Stage::new("opposite").await;
    let url = xtask::services::rabbitmq::url().unwrap();
    let other = Queue::on(&url, stage.queue.consumer(), &format!("{}.other", stage.queue.consumer())).await;
    let start = async |subscription: &Subscription| {
        let consumer = stage.consumer(writes_a_row()).max_batch(50).max_wait(Duration::from_millis(20));
        consumer.start(stage.queue.broker.clone(), subscription.clone()).await.unwrap()
    };
    let running = [start(&stage.queue.subscription).await, start(&other.subscription).await];
    let end = Instant::now() + Duration::from_secs(10);
    let mut all = Vec::new();
    while Instant::now() < end {
        let first = all.len();
        all.extend((first..first + 400).map(|n| format!("evt-{n:06}")));
        let forwards = &all[first..];
        tokio::join!(stage.queue.publish(forwards), other.publish(forwards.iter().rev()));
    }
    stage.ends_well(running, &all).await;
    other.is_empty().await;
    assert_eq!(stage.faults("conflict"), 0, "claims in one order never wait for each other in a circle");
    assert_eq!(stage.outcomes("applied") + stage.outcomes("duplicate"), 2 * all.len() as u64);
    assert_eq!(stage.outcomes("applied"), all.len() as u64);
}
