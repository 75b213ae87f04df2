//! Memory as the suite sees it: a broker of its own for each trial, virtual time throughout.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use aftercommit_conformance::broker::{BrokerFixture, Depth, Part, Stage};
use aftercommit_conformance::faults::{FaultyBroker, Script};
use aftercommit_core::{BoxError, Broker, Destination, HeaderValue, Headers, Subscription};
use aftercommit_memory::{Broken, Limit, MemoryBroker, Overflow, Settings};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fixture {
    pub(crate) settings: Settings,
    pub(crate) broken: Option<Broken>,
    /// Whether everything goes through the fault decorators, without a fault.
    pub(crate) decorated: bool,
}

/// tokio's own time is paused: a wait for what never comes ends at once.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
}

#[async_trait]
impl BrokerFixture for Fixture {
    fn product(&self) -> &'static str {
        "memory"
    }

    async fn stage(&self, _trial: &str) -> Result<Arc<dyn Stage>, BoxError> {
        let broker = MemoryBroker::with_settings(self.settings);
        let server = match self.broken {
            Some(promise) => broker.with_broken(promise),
            None => broker,
        };
        Ok(Arc::new(MemoryStage { server, fixture: *self }))
    }
}

struct MemoryStage {
    server: MemoryBroker,
    fixture: Fixture,
}

impl MemoryStage {
    fn exchange(topic: &str) -> String {
        format!("events.{topic}")
    }
}

#[async_trait]
impl Stage for MemoryStage {
    async fn connect(&self) -> Result<Arc<dyn Broker>, BoxError> {
        let broker = Arc::new(self.server.connect());
        if self.fixture.decorated {
            return Ok(Arc::new(FaultyBroker::new(broker, Script::record())));
        }
        Ok(broker)
    }

    fn subscription(&self, consumer: &str, topic: &str) -> Result<Subscription, BoxError> {
        let source = format!("{topic}.{consumer}");
        Ok(Subscription::new(consumer, source)?.with_binding(Self::exchange(topic), "key"))
    }

    fn destination(&self, topic: &str) -> Destination {
        Destination::new(Self::exchange(topic)).with_routing_key("key")
    }

    async fn depth(&self, subscription: &Subscription) -> Result<Depth, BoxError> {
        let depth = self.server.depth(&subscription.source).ok_or("there is no such queue")?;
        let ready = u64::try_from(depth.ready + depth.waiting)?;
        Ok(Depth { ready, unsettled: u64::try_from(depth.unsettled)? })
    }

    fn now(&self) -> Duration {
        self.server.clock().now()
    }

    async fn pass(&self, time: Duration) {
        self.server.clock().advance(time);
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn publish_deadline(&self) -> Duration {
        self.fixture.settings.publish_deadline
    }

    fn native(&self) -> Headers {
        [("colour".to_owned(), HeaderValue::text("blue"))].into_iter().collect()
    }

    fn too_large(&self) -> usize {
        self.fixture.settings.max_size + 1
    }

    async fn unroutable(&self) -> Result<Destination, BoxError> {
        self.server.make_exchange("nowhere");
        Ok(Destination::new("nowhere").with_routing_key("key"))
    }

    async fn full(&self) -> Result<Destination, BoxError> {
        self.server.make_queue("full", Some(Limit { most: 0, overflow: Overflow::Refuse }));
        Ok(Destination::new("").with_routing_key("full"))
    }

    async fn cut(&self) -> Result<(), BoxError> {
        self.server.cut_connections();
        Ok(())
    }

    async fn take_down(&self) -> Result<(), BoxError> {
        self.server.take_down();
        Ok(())
    }

    async fn bring_up(&self) -> Result<(), BoxError> {
        self.server.bring_up();
        Ok(())
    }

    async fn restart(&self) -> Result<(), BoxError> {
        self.server.restart();
        Ok(())
    }

    async fn stall(&self) -> Result<(), BoxError> {
        self.server.stall();
        Ok(())
    }

    async fn go_on(&self) -> Result<(), BoxError> {
        self.server.go_on();
        Ok(())
    }

    async fn remove(&self, part: Part, subscription: &Subscription) -> Result<(), BoxError> {
        match part {
            Part::Source => self.server.delete_queue(&subscription.source),
            Part::DeadLetter => {
                self.server.delete_queue(&self.server.dead_letter(subscription).routing_key);
            }
            Part::Route => {
                for binding in &subscription.bindings {
                    self.server.unbind(&binding.from, &subscription.source);
                }
            }
        }
        Ok(())
    }

    async fn occupy(&self, subscription: &Subscription) -> Result<(), BoxError> {
        let limit = Limit { most: 7, overflow: Overflow::Refuse };
        self.server.make_queue(&subscription.source, Some(limit));
        Ok(())
    }

    async fn limit(&self, subscription: &Subscription) -> Result<(), BoxError> {
        let limit = Limit { most: 7, overflow: Overflow::DropOldest };
        self.server.make_queue(&subscription.source, Some(limit));
        Ok(())
    }
}
