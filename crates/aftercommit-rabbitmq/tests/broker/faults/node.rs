//! On private nodes, which a test may stop, kill and set up as it likes.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{
    Broker, Message, PublishError, Publisher, Redelivered, SettleError, Source, Subscription,
};
use aftercommit_rabbitmq::{Config, QueueType};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use xtask::services::rabbitmq::{Node, NodeOptions};

use super::{until_down, until_up};
use crate::support::{PATIENCE, ack, many, one, send, text};

async fn node(extra_config: &'static str) -> Arc<Node> {
    let started = spawn_blocking(move || Node::start(NodeOptions { extra_config })).await.unwrap();
    Arc::new(started.expect("a private RabbitMQ node (install it with `cargo xtask setup`)"))
}

/// Does something to a node that blocks.
async fn on<T: Send + 'static>(node: &Arc<Node>, act: impl FnOnce(&Node) -> T + Send + 'static) -> T {
    let node = Arc::clone(node);
    spawn_blocking(move || act(&node)).await.unwrap()
}

struct Place {
    broker: Arc<dyn Broker>,
    subscription: Subscription,
}

impl Place {
    async fn new(config: Config, source: &str) -> Self {
        let broker = aftercommit_rabbitmq::connect(config).await.unwrap();
        let subscription = Subscription::new("tester", source).unwrap();
        broker.declare(&subscription).await.unwrap();
        Self { broker, subscription }
    }

    async fn source(&self) -> Box<dyn Source> {
        self.broker.source(&self.subscription).await.unwrap()
    }

    async fn publish(&self, publisher: &dyn Publisher, body: &str) -> Result<(), PublishError> {
        let to = aftercommit_core::Destination::new("").with_routing_key(&self.subscription.source);
        send(publisher, to, Message::new(body.to_owned())).await.map(|_| ())
    }

    async fn publish_until_ok(&self, publisher: &dyn Publisher, body: &str) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.publish(publisher, body).await {
            assert!(error.is_retryable() && Instant::now() < deadline, "{error}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_restart_loses_nothing_and_consumption_goes_on() {
    let node = node("").await;
    for (kind, hard) in [(QueueType::Quorum, true), (QueueType::Classic, false)] {
        let config = Config::new(&node.amqp_url()).unwrap().with_queue_type(kind);
        let place = Place::new(config, &format!("restart.{}", kind as u8)).await;
        let publisher = place.broker.publisher().await.unwrap();
        for body in ["1", "2", "3"] {
            place.publish(&*publisher, body).await.unwrap();
        }
        let mut source = place.source().await;
        let health = source.health();
        let mut stale = many(&mut source, 3).await;
        ack(stale.remove(0)).await.unwrap();
        on(&node, move |node| if hard { node.kill() } else { node.stop() }).await.unwrap();
        until_down(&health).await;
        assert!(stale.iter().all(aftercommit_core::Delivery::is_lost));
        on(&node, Node::start_again).await.unwrap();
        let back = Instant::now();
        until_up(&health).await;
        assert!(back.elapsed() < Duration::from_secs(5), "it took {:?}", back.elapsed());
        let answer = ack(stale.remove(0)).await;
        assert!(matches!(answer, Err(SettleError::Lost { .. })), "{answer:?}");
        place.publish_until_ok(&*publisher, "4").await;
        // The ack of the first may have died with the node.
        let mut bodies = Vec::new();
        while bodies.last().is_none_or(|body| body != "4") {
            let delivery = one(&mut source).await;
            bodies.push(text(&delivery));
            ack(delivery).await.unwrap();
        }
        bodies.retain(|body| body != "1");
        assert_eq!(bodies, ["2", "3", "4"], "{kind:?}");
        source.close().await.unwrap();
    }
}

/// The broker closes the channel with 406 because a handler took longer than it may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_timeout_costs_one_generation_and_no_message() {
    let node = node("consumer_timeout = 2000\n").await;
    // How often a channel looks, which no line of the configuration file can say.
    let tick = "application:set_env(rabbit, channel_tick_interval, 1000).";
    on(&node, move |node| node.ctl(&["eval", tick])).await.unwrap();
    for kind in [QueueType::Quorum, QueueType::Classic] {
        let config = Config::new(&node.amqp_url()).unwrap().with_queue_type(kind);
        let place = Place::new(config, &format!("timeout.{}", kind as u8)).await;
        let publisher = place.broker.publisher().await.unwrap();
        place.publish(&*publisher, "slow").await.unwrap();
        let mut source = place.source().await;
        let health = source.health();
        let slow = one(&mut source).await;
        let deadline = Instant::now() + PATIENCE;
        let (mut quick, mut again) = (0, false);
        // Until the broker has ended the channel, and then until the slow one has come again.
        while !slow.is_lost() || !again {
            assert!(Instant::now() < deadline, "lost: {}, again: {again}", slow.is_lost());
            place.publish_until_ok(&*publisher, "quick").await;
            let delivery = one(&mut source).await;
            if text(&delivery) == "slow" {
                again = true;
                assert_eq!(delivery.redelivered, Redelivered::Yes);
            }
            quick += usize::from(text(&delivery) == "quick");
            if let Err(error) = ack(delivery).await {
                assert!(matches!(error, SettleError::Lost { .. } | SettleError::Backend(_)), "{error:?}");
            }
        }
        assert!(quick > 0, "the others stood still");
        let answer = ack(slow).await;
        assert!(matches!(answer, Err(SettleError::Lost { .. })), "{answer:?}");
        until_up(&health).await;
        source.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_alarm_ends_publishes_by_their_deadline_and_leaves_consumers_alone() {
    let node = node("").await;
    let deadline = Duration::from_millis(800);
    let config = Config::new(&node.amqp_url()).unwrap().with_publish_deadline(deadline).unwrap();
    let place = Place::new(config, "alarm").await;
    let publisher = place.broker.publisher().await.unwrap();
    for body in ["1", "2"] {
        place.publish(&*publisher, body).await.unwrap();
    }
    let mut source = place.source().await;
    let waiting = many(&mut source, 2).await;
    on(&node, |node| node.ctl(&["set_vm_memory_high_watermark", "0"])).await.unwrap();
    let mut named = false;
    for _ in 0..4 {
        let since = Instant::now();
        match place.publish(&*publisher, "3").await.unwrap_err() {
            PublishError::Unknown { reason, .. } => named |= reason.contains("blocks publishers"),
            error => panic!("{error:?}"),
        }
        assert!(since.elapsed() < deadline * 2, "it took {:?}", since.elapsed());
    }
    assert!(named, "the alarm is not named");
    assert!(source.health().is_up());
    for delivery in waiting {
        ack(delivery).await.unwrap();
    }
    on(&node, |node| node.ctl(&["set_vm_memory_high_watermark", "0.4"])).await.unwrap();
    place.publish_until_ok(&*publisher, "4").await;
    // What was never sent is not sent when its caller has gone: one copy at most from the alarm's first moment.
    let mut bodies = Vec::new();
    while bodies.last().is_none_or(|body| body != "4") {
        let delivery = one(&mut source).await;
        bodies.push(text(&delivery));
        ack(delivery).await.unwrap();
    }
    assert!(bodies.len() <= 2, "{bodies:?}");
}
