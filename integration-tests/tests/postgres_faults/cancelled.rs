//! Futures dropped in the middle of a conversation with a slow database.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use aftercommit_conformance::proxy::Proxy;
use aftercommit_core::RetryPolicy;
use aftercommit_integration_tests::node;
use aftercommit_sql::PgInbox;
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sqlx::Row;
use sqlx::postgres::PgPool;
use tokio::time::{sleep, timeout};

use crate::stage::{Stage, ids, writes_a_row};

const SEED: u64 = 6;

/// Every answer takes 400 ms and a handler 100 ms at most: each call is cut at its deadline. Meanwhile consumers on
/// pools of two connections are started, dropped while they start, dropped while they run and shut down, fifty times at
/// random offsets. The pools live on, and what is in them must be fit for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h06_a_cancelled_future_leaves_no_connection_inside_a_transaction() {
    let node = node::common_postgres().await;
    let stage = Stage::on(&node.url(), "cancelled").await;
    let proxy = Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, node.port()))).unwrap();
    let db = stage.db.with(|server| server.port(proxy.addr().port()));
    let early: Vec<_> = (0..20).map(|n| format!("early-{n}")).collect();
    stage.queue.publish(&early).await;
    proxy.latency(Duration::from_millis(200));
    let pools: Vec<_> = (0..5).map(|_| db.pool(2)).collect();
    join_all(pools.iter().zip(0..).map(|(pool, n)| hurt(&stage, pool, n))).await;
    proxy.latency(Duration::ZERO);

    let mut running = Vec::new();
    for pool in &pools {
        running.push(stage.start(consumer(&stage, pool)).await);
    }
    let late = ids(100);
    stage.queue.publish(&late).await;
    let all: Vec<_> = early.into_iter().chain(late).collect();
    stage.ends(running, &all).await;
    stage.queue.has_dead_letters(0).await;
    assert_eq!(stage.log_lines("25P02").await, Vec::<String>::new());
    for pool in &pools {
        let mut conn = pool.acquire().await.unwrap();
        // In one simple query both are the same instant, unless the transaction is older.
        let row = sqlx::raw_sql("SELECT now() <> statement_timestamp()").fetch_one(&mut *conn).await.unwrap();
        let inside: bool = row.get(0);
        assert!(!inside, "the pool was left with a connection inside a transaction");
    }
}

fn consumer(stage: &Stage, pool: &PgPool) -> aftercommit_inbox::Consumer<PgInbox> {
    let inbox = PgInbox::with_options(pool.clone(), stage.db.options());
    let often = RetryPolicy::new(vec![Duration::from_millis(10); 10_000]).unwrap();
    stage.consumer_on(inbox, writes_a_row()).deadline(Some(Duration::from_millis(100))).retry(often)
}

async fn hurt(stage: &Stage, pool: &PgPool, number: u64) {
    let mut rng = StdRng::seed_from_u64(SEED + number);
    for round in 0..10 {
        let offset = Duration::from_millis(rng.random_range(0..4000));
        let starting =
            consumer(stage, pool).start(stage.queue.broker.clone(), stage.queue.subscription.clone());
        // A start that is cut off is dropped here.
        let Ok(started) = timeout(offset, starting).await else { continue };
        let Ok(running) = started else { continue };
        sleep(Duration::from_millis(rng.random_range(0..2000))).await;
        if round % 2 == 0 {
            running.shut_down();
            running.ended().await.unwrap();
        }
    }
}
