//! One life of the consumer's process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aftercommit_conformance::faults::{FaultyBroker, FaultyHandler, FaultyStore, Script};
use aftercommit_conformance::inbox::{Effect, Ledger};
use aftercommit_core::{Failure, Message, RetryPolicy};
use aftercommit_inbox::{Consumer, Handled, Handler};
use aftercommit_memory::MemoryBroker;
use aftercommit_sql::SqliteInbox;
use aftercommit_sql::sqlx::sqlite::SqliteConnection;
use async_trait::async_trait;
use tokio::time::{Instant, sleep, timeout};

use crate::world::{BAD, CONSUMER, POISON, WOBBLY, World, runtime};

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The queue is empty and the consumer was shut down.
    Drained,
    /// The consumer ended by itself, or nothing moves any more though something is unsettled.
    Stopped,
    /// The process died.
    Crashed,
}

/// Longer than the wait before a dead letter is published again.
const IDLE: Duration = Duration::from_millis(700);

/// Runs a consumer on a runtime and connections of its own until the queue is empty or it dies.
pub(crate) fn live(world: &World, script: &Script, batch: usize) -> End {
    let connection = world.server.connect();
    let process = runtime();
    let end = process.block_on(async {
        let life = timeout(Duration::from_secs(60), lead(world, &connection, script, batch));
        tokio::select! {
            _ = script.crashed() => End::Crashed,
            end = life => end.expect("a life takes no minute"),
        }
    });
    // As the system does: sockets close, threads of the process end.
    connection.abandon();
    process.shutdown_background();
    end
}

async fn lead(world: &World, connection: &MemoryBroker, script: &Script, batch: usize) -> End {
    let store = FaultyStore::new(world.ledger.store().await.unwrap(), script.clone());
    let handler = Business { ledger: Arc::clone(&world.ledger), seen: Mutex::default() };
    let broker = Arc::new(FaultyBroker::new(Arc::new(connection.clone()), script.clone()));
    let clock = world.server.clock();
    tokio::spawn(async move {
        loop {
            clock.advance(Duration::from_millis(100));
            sleep(Duration::from_millis(1)).await;
        }
    });
    let running = Consumer::new(store, FaultyHandler::new(handler, script.clone()))
        .max_batch(batch)
        .retry(RetryPolicy::new([Duration::from_secs(1); 3]).unwrap())
        .shutdown_within(Duration::from_secs(5))
        .start(broker, world.subscription.clone())
        .await
        .unwrap();
    // What an injected error ends is reported by the errors of the run, which are not at stake here.
    let _ = running.until(done(world, script)).await;
    if world.left() == 0 { End::Drained } else { End::Stopped }
}

/// The queue is empty, or nothing crosses a seam any more.
async fn done(world: &World, script: &Script) {
    let (mut points, mut since) = (0, Instant::now());
    while world.left() > 0 && since.elapsed() < IDLE {
        let now = script.trace().len();
        if now != points {
            (points, since) = (now, Instant::now());
        }
        sleep(Duration::from_millis(1)).await;
    }
}

struct Business {
    ledger: Arc<dyn Ledger<SqliteInbox>>,
    seen: Mutex<HashSet<String>>,
}

#[async_trait]
impl Handler<FaultyStore<SqliteInbox>> for Business {
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        match message.body.as_deref() {
            Some(body) if body == POISON.as_bytes() => Err(Failure::poison("it does not decode")),
            _ => Ok(()),
        }
    }

    async fn handle(&self, db: &mut SqliteConnection, message: &Message) -> Result<Handled, Failure> {
        let id = message.id.as_deref().unwrap_or_default().to_vec();
        let name = String::from_utf8_lossy(&id).into_owned();
        let effect = Effect { consumer: CONSUMER.into(), id, note: String::new() };
        self.ledger.record(db, &effect).await?;
        let first = self.seen.lock().unwrap().insert(name.clone());
        match name.as_str() {
            BAD => Err(Failure::transient("it always fails")),
            WOBBLY if first => Err(Failure::transient("it fails first")),
            _ => Ok(Handled::Applied),
        }
    }
}
