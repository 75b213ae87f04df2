//! Orders from outside: Python publishes 10,000 of them and what pika cannot write, to a quorum queue whose broker is
//! restarted twice. Every order is applied once, what has no id or no body is a dead letter with its reason, the queue
//! ends empty.
//!
//! Needs the programs of PostgreSQL, RabbitMQ and python3 with pika (`cargo xtask setup`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod manifest;
mod warehouse;

use std::time::Duration;

use aftercommit_inbox::{Consumer, Health, metric};
use aftercommit_integration_tests::counted::Counted;
use aftercommit_integration_tests::database::Database;
use aftercommit_integration_tests::foreign::Script;
use aftercommit_integration_tests::node::{self, Private};
use aftercommit_integration_tests::queue::Queue;
use aftercommit_integration_tests::until::{PATIENCE, until, until_true};
use xtask::services::rabbitmq::Node;

use manifest::Manifest;

const ORDERS: &str = "orders";
const CONSUMER: &str = "inventory";
const COUNT: u32 = 10_000;
const LONG: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_foreign_orders_are_applied_once_over_two_restarts() {
    let counted = Counted::install();
    let node = node::rabbitmq("").await;
    let url = node.amqp_url();
    let queue = Queue::on(&url, CONSUMER, ORDERS).await;
    let db = Database::create(&node::common_postgres().await.url(), "foreign").await;
    warehouse::open(&db).await;
    let consumer = Consumer::new(db.inbox(), warehouse::reserves());
    let running = consumer.start(queue.broker.clone(), queue.subscription.clone()).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (orders, raw, again) = (file("orders.json"), file("raw.json"), file("again.json"));
    let to = ["--url", &url, "--queue", ORDERS];
    let publish = |args: &[&str]| Script::start("publish_orders.py", &[&to[..], args].concat());

    let mut publisher = publish(&["--manifest", &orders, "--rate", "800", "--progress", "100"]);
    confirmed(&mut publisher, COUNT / 3).await;
    restart(&node, &running.health(), false).await;
    confirmed(&mut publisher, COUNT * 2 / 3).await;
    let all = ["types", "extreme", "not-utf8", "attempt"].map(|name| ["--category", name]).concat();
    let frames = Script::start("raw_amqp.py", &[&to[..], &["--manifest", &raw], &all].concat());
    restart(&node, &running.health(), true).await;
    publisher.ends_well(LONG).await;
    frames.ends_well(LONG).await;
    let odd = publish(&["--manifest", &again, "--count", "200"]);
    odd.ends_well(LONG).await;

    let wanted = Manifest::read(&orders).and(&Manifest::read(&raw));
    wanted.save(file("all.json"));
    warehouse::has_each_once(&db, &wanted).await;
    node.empties(ORDERS).await;
    assert!(running.health().is_ready(), "{:?}", running.health().not_ready());
    // Forgetting follows the settlement.
    until("attempts of parked messages are forgotten", PATIENCE, || async {
        match db.number("SELECT count(*) FROM inbox_attempts").await {
            0 => Ok(()),
            left => Err(format!("{left} are left")),
        }
    })
    .await;
    running.shut_down();
    running.ended().await.unwrap();
    node.empties(ORDERS).await;
    db.nothing_is_idle_in_a_transaction().await;

    let outcome = |name| counted.of(CONSUMER, metric::MESSAGES, name);
    assert_eq!(outcome("applied"), wanted.applicable().count() as u64);
    assert!(outcome("duplicate") >= 190, "the orders that were published twice");
    let dead = queue.broker.dead_letter(&queue.subscription).routing_key;
    let about = ["--manifest", &file("all.json"), "--origin", ORDERS, "--consumer", CONSUMER];
    let letters =
        Script::start("check_letters.py", &[&["--url", &url, "--queue", &dead][..], &about].concat());
    println!("{:?}, {} duplicates", letters.ends_well(LONG).await, outcome("duplicate"));
}

async fn confirmed(publisher: &mut Script, count: u32) {
    let reached = |line: &str| {
        let words = line.split_whitespace().find_map(|word| word.strip_prefix("confirmed="));
        words.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number >= count)
    };
    publisher.says(&format!("{count} are confirmed"), LONG, reached).await;
}

/// The consumer says that it is not ready while the broker is away, and that it is when it is back.
async fn restart(node: &Private<Node>, health: &Health, kill: bool) {
    assert!(health.is_ready(), "{:?}", health.not_ready());
    node.does(move |node| if kill { node.kill() } else { node.stop() }).await;
    let says = || health.not_ready().iter().any(|complaint| complaint.part.contains("source"));
    until_true("the consumer is not ready", PATIENCE, says).await;
    assert!(health.is_alive(), "an outage heals by itself");
    node.does(|node| node.start_again()).await;
    until_true("the consumer is ready again", PATIENCE, || health.is_ready()).await;
}
