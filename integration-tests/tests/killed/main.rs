//! A consumer's process, RabbitMQ into PostgreSQL, killed at five seams and started again: one effect per id, nothing
//! lost, seen from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use aftercommit_integration_tests::database::Database;
use aftercommit_integration_tests::queue::Queue;
use aftercommit_integration_tests::until::PATIENCE;
use lapin::options::QueueDeleteOptions;
use lapin::{Connection, ConnectionProperties};
use tokio::process::{Child, Command};

const MESSAGES: usize = 20;

/// What is in the database while nobody runs: messages per transaction are two at most, and the kill is at the
/// second claim, handler call, commit or settlement.
struct Found {
    effects: i64,
    left: u32,
}

#[tokio::test]
async fn after_the_claim() {
    let found = killed("after-claim").await;
    assert!(found.effects <= 2, "{} effects of the first transaction", found.effects);
}

#[tokio::test]
async fn after_the_handler() {
    let found = killed("after-handle").await;
    assert!(found.effects <= 2, "{} effects", found.effects);
}

#[tokio::test]
async fn after_the_commit_before_the_settlement() {
    let found = killed("after-commit").await;
    assert!(found.effects >= 2, "{} effects of two transactions", found.effects);
    let settled = i64::try_from(MESSAGES + 1).unwrap() - i64::from(found.left);
    assert!(settled < found.effects, "{settled} settled of {} applied", found.effects);
}

#[tokio::test]
async fn after_the_settlement() {
    let found = killed("after-ack").await;
    // One of the two settlements may be that of the poison, whose letter was confirmed: it has no effect.
    assert!(found.effects >= 1, "{} effects", found.effects);
}

#[tokio::test]
async fn after_the_publish_of_a_dead_letter_before_the_settlement() {
    let found = killed("after-publish").await;
    assert!(found.left >= 1, "the original is gone before its letter was confirmed");
}

/// One story: a queue of messages, a consumer that is killed, what is there then, and a second consumer.
async fn killed(seam: &str) -> Found {
    let name = format!("killed-{seam}-{}", uuid::Uuid::new_v4().simple());
    let amqp = xtask::services::rabbitmq::url().unwrap();
    let queue = Queue::shared(&name).await;
    let postgres = xtask::services::postgres::url().unwrap();
    let database = Database::create(&postgres, "killed").await;
    let ids: Vec<String> = (0..MESSAGES).map(|number| format!("evt-{number:02}")).collect();
    queue.publish(["bad"]).await;
    queue.publish(&ids).await;

    let arguments = [&amqp, &name, &postgres, database.schema(), seam].map(str::to_owned);
    let mut first = start(&arguments);
    let status = tokio::time::timeout(PATIENCE, first.wait()).await.expect("it is killed in time").unwrap();
    assert_eq!(status.signal(), Some(9), "it was to be killed and ended with {status}");
    let left = until_back(&amqp, &name).await;
    let effects = database.number("SELECT count(*) FROM effects").await;
    assert_eq!(
        effects,
        database.number("SELECT count(*) FROM inbox_messages").await,
        "effects and inbox differ"
    );

    let mut second = start(&[&amqp, &name, &postgres, database.schema(), "none"].map(str::to_owned));
    database.has_one_effect_each(&ids, PATIENCE).await;
    // A killed parking leaves a second copy of the letter, or none of its kind.
    let letters = if seam == "after-publish" { 2 } else { 1 };
    queue.has_dead_letters(letters).await;
    queue.is_empty().await;
    second.kill().await.unwrap();
    let left_at_end = until_back(&amqp, &name).await;
    assert_eq!(left_at_end, 0, "messages came back that were settled");
    database.has_one_effect_each(&ids, Duration::ZERO).await;

    database.run(&format!("DROP SCHEMA {} CASCADE", database.schema())).await;
    remove(&amqp, &[&name, &queue.broker.dead_letter(&queue.subscription).routing_key]).await;
    Found { effects, left }
}

fn start(arguments: &[String]) -> Child {
    let mut victim = Command::new(env!("CARGO_BIN_EXE_victim"));
    victim.args(arguments).stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

/// Waits until the broker has noticed that no consumer is left, and answers how many messages it has then.
async fn until_back(amqp: &str, queue: &str) -> u32 {
    let connection = Connection::connect(amqp, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let passive = lapin::options::QueueDeclareOptions { passive: true, ..Default::default() };
        let found = channel.queue_declare(queue.into(), passive, Default::default()).await.unwrap();
        if found.consumer_count() == 0 {
            connection.close(200, "".into()).await.unwrap();
            return found.message_count();
        }
        assert!(tokio::time::Instant::now() < end, "the broker still knows a consumer");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn remove(amqp: &str, queues: &[&str]) {
    let connection = Connection::connect(amqp, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    for queue in queues {
        channel.queue_delete((*queue).into(), QueueDeleteOptions::default()).await.unwrap();
    }
    connection.close(200, "".into()).await.unwrap();
}
