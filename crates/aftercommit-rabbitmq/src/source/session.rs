//! One generation of a subscription: connection, channel, prefetch, consumer.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::BrokerError;
use futures_util::StreamExt;
use lapin::Consumer;
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::shelf::{Item, Line, Shelf};
use crate::config::Config;
use crate::error::{self, PRODUCT};
use crate::link::Link;
use crate::message::incoming;
use crate::topology::name;

/// How often a session looks whether lapin still calls its channel open, should an event be missed.
const LOOK: Duration = Duration::from_secs(1);

/// What a session subscribes to.
pub(crate) struct Subscribed {
    config: Arc<Config>,
    queue: ShortString,
    prefetch: u16,
}

impl Subscribed {
    pub(crate) fn new(config: Arc<Config>, queue: &str, prefetch: u16) -> Result<Self, BrokerError> {
        Ok(Self { config, queue: name(queue, "the queue's name")?, prefetch })
    }

    pub(super) const fn queue(&self) -> &ShortString {
        &self.queue
    }

    pub(crate) fn longest_hold(&self) -> Duration {
        self.config.longest_hold
    }
}

/// Why a session ended.
pub(super) enum End {
    Stopped,
    Lost(String),
}

pub(super) struct Session {
    link: Link,
    line: Arc<Line>,
    consumer: Consumer,
}

impl Session {
    pub(super) async fn open(wanted: &Subscribed) -> Result<Self, BrokerError> {
        let Subscribed { config, queue, prefetch } = wanted;
        let link = Link::open(config, &format!("source {queue}")).await?;
        let channel = link.channel(config).await?;
        let subscribing = async {
            // Before the consumer: nothing else bounds what the broker sends to it.
            channel.basic_qos(*prefetch, BasicQosOptions { global: false }).await?;
            let options = BasicConsumeOptions::default();
            channel.basic_consume(queue.clone(), "".into(), options, FieldTable::default()).await
        };
        let consumer = match timeout(config.connect_timeout, subscribing).await {
            Ok(Ok(consumer)) => consumer,
            Ok(Err(error)) => {
                let place = || format!("queue {queue}");
                return Err(error::touching(&config.address(), place, "subscribe", error));
            }
            Err(elapsed) => {
                let (action, source) = ("subscribe in time", Box::new(elapsed));
                return Err(BrokerError::Backend { product: PRODUCT, action, source });
            }
        };
        Ok(Self { link, line: Arc::new(Line::new(channel)), consumer })
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// Puts deliveries on the shelf until the subscription ends.
    pub(super) async fn serve(&mut self, shelf: &Shelf, stop: &CancellationToken) -> End {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return End::Stopped,
                next = self.consumer.next() => next,
                _ = look.tick() => {
                    if self.line.is_ended() {
                        return End::Lost("the channel has ended".to_owned());
                    }
                    continue;
                }
            };
            match next {
                Some(Ok(delivery)) => shelf.put(self.item(delivery)),
                Some(Err(error)) => return End::Lost(error::reason(&error)),
                None => {
                    let queue = self.consumer.queue();
                    return End::Lost(format!("the broker ended the subscription to queue {queue}"));
                }
            }
        }
    }

    fn item(&self, delivery: lapin::message::Delivery) -> Item {
        let (tag, redelivered) = (delivery.delivery_tag, delivery.redelivered);
        let raw_id = self.link.seen().take_raw_id(self.line.channel().id(), tag);
        Item::new(incoming(delivery, raw_id), redelivered, tag, Arc::clone(&self.line))
    }

    pub(super) async fn close(self) {
        self.link.close(Some(self.line.channel())).await;
    }
}
