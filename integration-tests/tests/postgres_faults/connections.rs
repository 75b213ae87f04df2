//! Connections that end, or that somebody else has.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::Message;
use aftercommit_inbox::{Handled, handler_fn};
use aftercommit_integration_tests::database::{WAIT_FOR_CONNECTION, effect};
use aftercommit_integration_tests::node;
use aftercommit_integration_tests::until::{PATIENCE, until};
use aftercommit_sql::PgInbox;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, Postgres};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;
use xtask::services::postgres::Shutdown;

use crate::stage::{Stage, id, ids, writes_a_row};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_load_costs_no_attempt() {
    let node = node::postgres("").await;
    let stage = Stage::on(&node.url(), "restart").await;
    let running = stage.start(stage.consumer(writes_a_row())).await;
    let ids = ids(900);
    for (part, how) in ids.chunks(300).zip([Some(Shutdown::Fast), Some(Shutdown::Immediate), None]) {
        let publishing = stage.queue.publish(part);
        let hurting = async {
            let before = stage.db.number("SELECT count(*) FROM effects").await;
            until_more_than(&stage, before).await;
            node.does(move |node| how.map_or_else(|| node.kill(), |how| node.stop(how))).await;
            stage.database_is(false, &running).await;
            assert!(running.health().is_alive(), "an outage heals by itself");
            node.does(|node| node.start_again()).await;
            stage.database_is(true, &running).await;
        };
        tokio::join!(publishing, hurting);
    }
    stage.ends_well([running], &ids).await;
}

async fn until_more_than(stage: &Stage, before: i64) {
    let more = async { while stage.db.number("SELECT count(*) FROM effects").await <= before {} };
    timeout(PATIENCE, more).await.expect("consumption goes on");
}

/// The backend dies while the handler is between two statements, and right after its last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_killed_in_the_middle_of_a_transaction_costs_no_attempt() {
    let stage = Stage::new("backend").await;
    // The backend of the handler that waits; 0 again for the next one.
    let (inside, mut seen) = watch::channel(0);
    let inside = Arc::new(inside);
    let reset = Arc::clone(&inside);
    let go_on = Arc::new(Notify::new());
    let released = Arc::clone(&go_on);
    let handler = handler_fn(move |db: &mut PgConnection, message: &Message| {
        let (inside, released) = (Arc::clone(&inside), Arc::clone(&released));
        Box::pin(async move {
            effect(db, id(message), "").await?;
            if *inside.borrow() == 0 {
                let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *db).await?;
                inside.send_replace(pid);
                released.notified().await;
                if id(message).ends_with('0') {
                    sqlx::query("SELECT 1").execute(db).await?;
                }
            }
            Ok(Handled::Applied)
        })
    });
    let running = stage.start(stage.consumer(handler).lanes(1)).await;
    let ids = ids(2);
    for id in &ids {
        reset.send_replace(0);
        stage.queue.publish([id]).await;
        let pid = *timeout(PATIENCE, seen.wait_for(|pid| *pid != 0)).await.unwrap().unwrap();
        let killed = stage.db.number(&format!("SELECT pg_terminate_backend({pid}, 5000)::int::bigint")).await;
        assert_eq!(killed, 1);
        go_on.notify_one();
        stage.db.has_one_effect_each(&ids[..=usize::from(id == &ids[1])], PATIENCE).await;
    }
    assert!(stage.faults("unavailable") >= 1);
    stage.ends_well([running], &ids).await;
}

/// The lanes' own connections die, and whoever else uses the pool is quicker to take their places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h16_a_pool_that_somebody_else_uses_up_is_back_pressure() {
    let stage = Stage::new("pool").await;
    let pool = stage.db.pool(4);
    let inbox = PgInbox::with_options(pool.clone(), stage.db.options());
    let running = stage.start(stage.consumer_on(inbox, writes_a_row())).await;
    let schema = stage.db.schema();
    let lanes = format!("FROM pg_stat_activity WHERE application_name = '{schema}'");
    assert_eq!(stage.db.number(&format!("SELECT count(*) {lanes}")).await, 2);

    let taking: Vec<_> = (0..4).map(|_| tokio::spawn(take(pool.clone()))).collect();
    until("half of the pool is theirs", PATIENCE, || async {
        let open = stage.db.number(&format!("SELECT count(*) {lanes}")).await;
        if open == 4 { Ok(()) } else { Err(format!("{open} are open")) }
    })
    .await;
    let oldest = format!("SELECT pid {lanes} ORDER BY backend_start LIMIT 2");
    let ended = format!("SELECT count(pg_terminate_backend(pid, 5000)) FROM ({oldest}) AS lane");
    assert_eq!(stage.db.number(&ended).await, 2);
    let ids = ids(50);
    stage.queue.publish(&ids).await;
    let mut theirs = Vec::new();
    for taking in taking {
        theirs.push(timeout(PATIENCE, taking).await.unwrap().unwrap());
    }
    stage.database_is(false, &running).await;
    let (applied, faults) =
        (stage.db.number("SELECT count(*) FROM effects").await, stage.faults("unavailable"));
    // Longer than a wait for a connection: a consumer that took it for a failure would have counted by now.
    tokio::time::sleep(WAIT_FOR_CONNECTION + Duration::from_secs(1)).await;
    assert!(!running.health().is_ready() && running.health().is_alive());
    assert_eq!(stage.db.number("SELECT count(*) FROM effects").await, applied);
    assert!(faults >= 1);
    stage.db.no_attempt_was_spent().await;
    drop(theirs);
    stage.ends_well([running], &ids).await;
    assert!(timeout(PATIENCE, pool.acquire()).await.unwrap().is_ok(), "the pool is left to its owner");
}

async fn take(pool: PgPool) -> PoolConnection<Postgres> {
    loop {
        if let Ok(conn) = pool.acquire().await {
            return conn;
        }
    }
}

#[tokio::test]
async fn h16_four_lanes_on_a_pool_of_four_are_refused() {
    let stage = Stage::new("lanes").await;
    let inbox = PgInbox::with_options(stage.db.pool(4), stage.db.options());
    let consumer = stage.consumer_on(inbox, writes_a_row()).lanes(4);
    let started = consumer.start(stage.queue.broker.clone(), stage.queue.subscription.clone()).await;
    let error = started.unwrap_err();
    assert!(!error.is_retryable());
    let text = error.to_string();
    assert!(text.contains("lanes") && text.contains("is 4") && text.contains("most is 2"), "{text}");
}

/// However many messages wait, no more handlers run than there are lanes, and the pool has room for its owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h16_handlers_in_flight_never_exceed_the_lanes() {
    let stage = Stage::new("flight").await;
    let room = Arc::new(Semaphore::new(2));
    let handler = handler_fn(move |db: &mut PgConnection, message: &Message| {
        let room = Arc::clone(&room);
        Box::pin(async move {
            let _one =
                room.try_acquire().map_err(|_| aftercommit_core::Failure::poison("a third handler"))?;
            sqlx::query("SELECT pg_sleep(0.002)").execute(&mut *db).await?;
            effect(db, id(message), "").await?;
            Ok(Handled::Applied)
        })
    });
    let pool = PgPoolOptions::new()
        .max_connections(4)
        .acquire_timeout(WAIT_FOR_CONNECTION)
        .connect_with(stage.db.pool(1).connect_options().as_ref().clone())
        .await
        .unwrap();
    let running = stage
        .start(stage.consumer_on(PgInbox::with_options(pool.clone(), stage.db.options()), handler))
        .await;
    let ids = ids(500);
    let own = async {
        for _ in 0..20 {
            let mut conn = pool.acquire().await.expect("a connection for the owner of the pool");
            sqlx::query("SELECT 1").execute(&mut *conn).await.unwrap();
        }
    };
    tokio::join!(stage.queue.publish(&ids), own);
    stage.ends_well([running], &ids).await;
}
