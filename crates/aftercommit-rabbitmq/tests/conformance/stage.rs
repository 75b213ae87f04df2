use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use aftercommit_conformance::broker::{Ability, BrokerFixture, Depth, Part, Stage};
use aftercommit_conformance::proxy::Proxy;
use aftercommit_core::{BoxError, Broker, Destination, HeaderValue, Headers, Message, Subscription};
use aftercommit_rabbitmq::{Config, QueueType};
use async_trait::async_trait;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use time::format_description::well_known::Rfc3339;
use tokio::task::spawn_blocking;

use crate::server::{Server, through};

const KEY: &str = "key";
const DEADLINE: Duration = Duration::from_secs(2);
const LARGEST: usize = 4 << 20;

pub(crate) struct Fixture {
    pub(crate) queue_type: QueueType,
}

#[async_trait]
impl BrokerFixture for Fixture {
    fn product(&self) -> &'static str {
        "rabbitmq"
    }

    async fn stage(&self, _trial: &str) -> Result<Arc<dyn Stage>, BoxError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = Server::get().await?;
        let proxy = Proxy::start(server.address())?;
        let config = Config::new(&through(&server.amqp_url(), proxy.addr().port()))?
            .with_management(&server.management_url())?
            .with_queue_type(self.queue_type)
            .with_heartbeat(Duration::from_secs(2))?
            .with_publish_deadline(DEADLINE)?
            .with_max_message_size(LARGEST)?;
        let name = format!("stage{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(RabbitStage { server, proxy: Arc::new(proxy), config, name }))
    }

    fn absent(&self) -> Vec<(Ability, &'static str)> {
        vec![(Ability::RepeatedHeaders, "a table of AMQP has each name once")]
    }
}

struct RabbitStage {
    server: &'static Server,
    proxy: Arc<Proxy>,
    config: Config,
    name: String,
}

impl RabbitStage {
    /// A connection of the operator, past the proxy.
    async fn operator(&self) -> Result<(Connection, Channel), BoxError> {
        let url = self.server.amqp_url();
        let connection = Connection::connect(&url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        Ok((connection, channel))
    }

    fn exchange(&self, topic: &str) -> String {
        format!("{}.{topic}", self.name)
    }
}

#[async_trait]
impl Stage for RabbitStage {
    async fn connect(&self) -> Result<Arc<dyn Broker>, BoxError> {
        Ok(aftercommit_rabbitmq::connect(self.config.clone()).await?)
    }

    fn subscription(&self, consumer: &str, topic: &str) -> Result<Subscription, BoxError> {
        let queue = format!("{}.{topic}.{consumer}", self.name);
        Ok(Subscription::new(consumer, queue)?.with_binding(self.exchange(topic), KEY))
    }

    fn destination(&self, topic: &str) -> Destination {
        Destination::new(self.exchange(topic)).with_routing_key(KEY)
    }

    async fn depth(&self, subscription: &Subscription) -> Result<Depth, BoxError> {
        let (server, queue) = (self.server, subscription.source.clone());
        let depth = spawn_blocking(move || server.depths().of(&queue)).await??;
        Ok(Depth { ready: depth.ready, unsettled: depth.unsettled })
    }

    fn publish_deadline(&self) -> Duration {
        DEADLINE
    }

    /// Envelope fields travel as headers besides, a short text as a text, and the time may be a property.
    fn expected(&self, sent: &Message) -> Message {
        let mut expected = sent.clone();
        let headers = std::mem::take(&mut expected.headers);
        expected.headers = headers.into_iter().map(|(name, value)| (name, travelled(value))).collect();
        for (name, field) in [
            ("schemaVersion", &sent.schema_version),
            ("aggregateId", &sent.aggregate_id),
            ("traceId", &sent.trace_id),
            ("occurredAt", &sent.occurred_at.map(|at| at.format(&Rfc3339).unwrap())),
        ] {
            if let Some(text) = field {
                expected.headers.set(name, text.as_str());
            }
        }
        if let Some(HeaderValue::Timestamp(seconds)) = sent.native.get("timestamp") {
            let at = time::OffsetDateTime::from_unix_timestamp((*seconds).try_into().unwrap()).unwrap();
            expected.occurred_at.get_or_insert(at);
        }
        if let Some(key) = &sent.key {
            expected.headers.set(KEY, HeaderValue::Text(key.clone()));
        }
        expected
    }

    fn native(&self) -> Headers {
        [
            ("content_type", HeaderValue::ShortText("application/json".into())),
            ("content_encoding", HeaderValue::ShortText("identity".into())),
            ("priority", HeaderValue::U8(3)),
            ("reply_to", HeaderValue::ShortText("answers".into())),
            ("timestamp", HeaderValue::Timestamp(1_700_000_000)),
            ("app_id", HeaderValue::ShortText("order-service".into())),
            ("cluster_id", HeaderValue::ShortText("one".into())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
    }

    fn too_large(&self) -> usize {
        LARGEST + 1
    }

    async fn unroutable(&self) -> Result<Destination, BoxError> {
        let (_connection, channel) = self.operator().await?;
        let name = format!("{}.nowhere", self.name);
        let options = ExchangeDeclareOptions::default();
        let declared = channel.exchange_declare(
            name.as_str().into(),
            ExchangeKind::Fanout,
            options,
            FieldTable::default(),
        );
        declared.await?;
        Ok(Destination::new(name).with_routing_key(KEY))
    }

    async fn full(&self) -> Result<Destination, BoxError> {
        let (_connection, channel) = self.operator().await?;
        let name = format!("{}.full", self.name);
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongInt(1));
        arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(name.as_str().into(), options, arguments).await?;
        channel.confirm_select(lapin::options::ConfirmSelectOptions::default()).await?;
        let (options, properties) =
            (lapin::options::BasicPublishOptions::default(), BasicProperties::default());
        channel
            .basic_publish("".into(), name.as_str().into(), options, b"fills it", properties)
            .await?
            .await?;
        Ok(Destination::new("").with_routing_key(name))
    }

    async fn cut(&self) -> Result<(), BoxError> {
        self.proxy.cut();
        Ok(())
    }

    async fn take_down(&self) -> Result<(), BoxError> {
        self.proxy.refuse();
        self.proxy.cut();
        Ok(())
    }

    async fn bring_up(&self) -> Result<(), BoxError> {
        Ok(self.proxy.accept()?)
    }

    async fn restart(&self) -> Result<(), BoxError> {
        self.server.on(|node| node.stop().and_then(|()| node.start_again())).await??;
        Ok(())
    }

    async fn stall(&self) -> Result<(), BoxError> {
        self.proxy.blackhole();
        Ok(())
    }

    async fn go_on(&self) -> Result<(), BoxError> {
        self.proxy.end_blackhole();
        Ok(())
    }

    async fn remove(&self, part: Part, subscription: &Subscription) -> Result<(), BoxError> {
        let (_connection, channel) = self.operator().await?;
        let source = subscription.source.as_str();
        match part {
            Part::Source => {
                channel.queue_delete(source.into(), QueueDeleteOptions::default()).await?;
            }
            Part::DeadLetter => {
                let dead = format!("{source}.{}.dead", subscription.consumer);
                channel.queue_delete(dead.as_str().into(), QueueDeleteOptions::default()).await?;
            }
            Part::Route => {
                for route in &subscription.bindings {
                    let (from, key) = (route.from.as_str().into(), route.key.as_str().into());
                    channel.queue_unbind(source.into(), from, key, FieldTable::default()).await?;
                }
            }
        }
        Ok(())
    }

    async fn occupy(&self, subscription: &Subscription) -> Result<(), BoxError> {
        let (_connection, channel) = self.operator().await?;
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongInt(1000));
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(subscription.source.as_str().into(), options, arguments).await?;
        Ok(())
    }

    async fn limit(&self, subscription: &Subscription) -> Result<(), BoxError> {
        let queue = subscription.source.clone();
        let pattern = format!("^{}$", queue.replace('.', "\\."));
        let set = queue.clone();
        let definition = r#"{"max-length": 1000}"#;
        self.server
            .on(move |node| node.ctl(&["set_policy", &set, &pattern, definition, "--apply-to", "queues"]))
            .await??;
        let url =
            format!("{}/api/queues/%2f/{queue}", self.server.management_url().replace("guest:guest@", ""));
        spawn_blocking(move || shown(&url)).await?
    }
}

fn travelled(value: HeaderValue) -> HeaderValue {
    match value {
        HeaderValue::ShortText(text) => HeaderValue::text(text),
        HeaderValue::List(values) => HeaderValue::List(values.into_iter().map(travelled).collect()),
        HeaderValue::Table(table) => {
            HeaderValue::Table(table.into_iter().map(|(name, value)| (name, travelled(value))).collect())
        }
        value => value,
    }
}

/// Waits until the broker shows the policy, which it does with its statistics.
fn shown(url: &str) -> Result<(), BoxError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let mut answer = ureq::get(url).header("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=").call()?;
        let json: serde_json::Value = serde_json::from_str(&answer.body_mut().read_to_string()?)?;
        if !json["effective_policy_definition"]["max-length"].is_null() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err("the broker does not show the policy".into())
}
