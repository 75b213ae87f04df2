//! A real consumer, RabbitMQ into PostgreSQL, that is killed at a seam: a test starts it, and starts it again.
//!
//! `victim AMQP-URL QUEUE POSTGRES-URL SCHEMA SEAM`, with a seam of [`seam`] or `none`. It never ends by itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's program fails by panicking"
)]

use std::sync::Arc;

use aftercommit_conformance::faults::{Fault, FaultyBroker, FaultyHandler, FaultyStore, Script, Seam, Side};
use aftercommit_core::{Failure, Message, Subscription};
use aftercommit_inbox::{Consumer, Handled, Handler};
use aftercommit_integration_tests::database::{Database, effect};
use aftercommit_rabbitmq::Config;
use aftercommit_sql::PgInbox;
use async_trait::async_trait;
use sqlx::postgres::PgConnection;

/// The points at which it can be killed; the second claim and so on, so that something was done before.
fn seam(name: &str) -> Script {
    let (seam, side) = match name {
        "none" => return Script::record(),
        "after-claim" => (Seam::Claim, Side::After),
        "after-handle" => (Seam::Handle, Side::After),
        "after-commit" => (Seam::Commit, Side::After),
        "after-ack" => (Seam::Ack, Side::After),
        "after-publish" => return Script::record().at(Seam::Publish, Side::After, 0, Fault::Crash),
        other => panic!("no such seam: {other}"),
    };
    Script::record().at(seam, side, 1, Fault::Crash)
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [amqp, queue, postgres, schema, name] = arguments.as_slice() else {
        panic!("victim AMQP-URL QUEUE POSTGRES-URL SCHEMA SEAM");
    };
    let script = seam(name);
    let broker = aftercommit_rabbitmq::connect(Config::new(amqp).expect("a RabbitMQ URL")).await.unwrap();
    let store = FaultyStore::new(Database::existing(postgres, schema).inbox(), script.clone());
    let running = Consumer::new(store, FaultyHandler::new(Business, script.clone()))
        .max_batch(2)
        .start(
            Arc::new(FaultyBroker::new(broker, script.clone())),
            Subscription::new(queue, queue).expect("plain names"),
        )
        .await
        .unwrap();
    tokio::select! {
        _ = script.crashed() => {}
        ended = running.ended() => panic!("the consumer ended: {ended:?}"),
    }
    // As the kernel's OOM killer does: nothing is flushed, closed or said.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    std::future::pending::<()>().await;
}

struct Business;

#[async_trait]
impl Handler<FaultyStore<PgInbox>> for Business {
    async fn handle(&self, db: &mut PgConnection, message: &Message) -> Result<Handled, Failure> {
        let id = String::from_utf8_lossy(message.id.as_deref().unwrap_or_default()).into_owned();
        effect(db, &id, "").await?;
        if id == "bad" {
            return Err(Failure::invariant("no such order"));
        }
        Ok(Handled::Applied)
    }
}
