//! Duplicates that wait for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aftercommit_core::{Failure, Message};
use aftercommit_inbox::{Handled, Handler, handler_fn};
use aftercommit_integration_tests::database::effect;
use aftercommit_integration_tests::until::{PATIENCE, until, until_true};
use aftercommit_sql::PgInbox;
use sqlx::postgres::PgConnection;
use tokio::sync::Notify;

use crate::stage::{Stage, id};

/// The first call goes on when it is told, and fails then if `fails`.
fn slow(fails: bool, calls: &Arc<AtomicU32>, go_on: &Arc<Notify>) -> impl Handler<PgInbox> + use<> {
    let (calls, go_on) = (Arc::clone(calls), Arc::clone(go_on));
    handler_fn(move |db: &mut PgConnection, message: &Message| {
        let (calls, go_on) = (Arc::clone(&calls), Arc::clone(&go_on));
        Box::pin(async move {
            effect(db, id(message), "").await?;
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                go_on.notified().await;
                if fails {
                    return Err(Failure::transient("the first one fails"));
                }
            }
            Ok(Handled::Applied)
        })
    })
}

/// Two instances get a copy each, and the second one's claim waits for the first one's transaction.
async fn two_copies(name: &str, fails: bool) -> (Stage, u32) {
    let stage = Stage::new(name).await;
    let (calls, go_on) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let mut subscription = stage.queue.subscription.clone();
    subscription = subscription.with_prefetch(1).unwrap();
    let mut running = Vec::new();
    for _ in 0..2 {
        let consumer = stage.consumer(slow(fails, &calls, &go_on)).lanes(1).max_batch(1);
        running.push(consumer.start(stage.queue.broker.clone(), subscription.clone()).await.unwrap());
    }
    stage.queue.publish(["X"]).await;
    until_true("the first one runs", PATIENCE, || calls.load(Ordering::SeqCst) == 1).await;
    stage.queue.publish(["X"]).await;
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND wait_event_type = 'Lock'",
        stage.db.schema()
    );
    until("the second one waits", PATIENCE, || async {
        if stage.db.number(&waits).await == 1 { Ok(()) } else { Err("nobody waits".to_owned()) }
    })
    .await;
    go_on.notify_one();
    stage.db.has_one_effect_each(&["X".to_owned()], PATIENCE).await;
    stage.queue.publish(["X"]).await;
    let settled = || stage.outcomes("applied") == 1 && stage.outcomes("duplicate") == 2;
    until_true("one applied, two duplicates", PATIENCE, settled).await;
    stage.ends(running, &["X".to_owned()]).await;
    stage.queue.has_dead_letters(0).await;
    assert_eq!(stage.log_lines("25P02").await, Vec::<String>::new());
    let calls = calls.load(Ordering::SeqCst);
    (stage, calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h05_the_copy_that_waited_for_a_commit_is_a_duplicate() {
    let (stage, calls) = two_copies("commits", false).await;
    assert_eq!(calls, 1);
    stage.db.no_attempt_was_spent().await;
    assert_eq!(stage.log_lines("ERROR").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h05_the_copy_that_waited_for_a_rollback_runs() {
    let (stage, calls) = two_copies("rolls_back", true).await;
    assert_eq!(calls, 2, "the failed one, and the one that waited");
    let first =
        "SELECT count(*) FROM inbox_attempts WHERE failures = 1 AND last_error = 'the first one fails'";
    assert_eq!(stage.db.number(first).await, 1);
}
