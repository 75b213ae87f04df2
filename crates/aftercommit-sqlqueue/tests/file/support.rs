use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{
    Broker, Delivery, Destination, Message, Outgoing, PublishError, Publisher, Receipt, SettleError, Settled,
    Source, Subscription,
};
use aftercommit_sqlqueue::{Config, SqlQueue};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const VISIBILITY: Duration = Duration::from_millis(900);

/// A file of its own with one declared queue.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) queue: SqlQueue,
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) subscription: Subscription,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|config| config).await
    }

    pub(crate) async fn with(change: impl FnOnce(Config) -> Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::at(folder.path().join("queue.db")).unwrap().with_visibility(VISIBILITY).unwrap();
        let queue = SqlQueue::connect(change(config)).await.unwrap();
        let subscription = Subscription::new("billing", "orders").unwrap().with_binding("events", "created");
        queue.declare(&subscription).await.unwrap();
        let publisher = Arc::from(queue.publisher().await.unwrap());
        Self { folder, queue, publisher, subscription }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("queue.db")
    }

    /// A connection that is not the queue's, as another process has it.
    pub(crate) async fn foreign(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.path()).connect().await.unwrap()
    }

    /// Runs a statement as another process does.
    pub(crate) async fn tamper(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.foreign().await).await.unwrap();
    }

    pub(crate) async fn publish(&self, message: Message) -> Result<Receipt, PublishError> {
        let to = Destination::new("events").with_routing_key("created");
        self.publisher.publish(Outgoing::new(to, message)).await
    }

    pub(crate) async fn send(&self, bodies: &[&'static str]) {
        for body in bodies {
            self.publish(Message::new(*body)).await.unwrap();
        }
    }

    pub(crate) async fn source(&self) -> Box<dyn Source> {
        self.queue.source(&self.subscription).await.unwrap()
    }

    pub(crate) async fn total(&self) -> u64 {
        self.queue.depth("orders").await.unwrap().total()
    }
}

pub(crate) async fn take(source: &mut Box<dyn Source>) -> Delivery {
    let batch = timeout(PATIENCE, source.recv(1)).await.expect("a delivery in time").unwrap();
    batch.into_iter().next().unwrap()
}

pub(crate) async fn nothing_comes(source: &mut Box<dyn Source>, within: Duration) {
    if let Ok(batch) = timeout(within, source.recv(1)).await {
        panic!("nothing should have come, and {batch:?} did");
    }
}

#[expect(clippy::disallowed_methods, reason = "these tests settle by hand")]
pub(crate) async fn ack(delivery: Delivery) -> Result<Settled, SettleError> {
    delivery.into_acker().ack().await
}

pub(crate) fn body(delivery: &Delivery) -> &[u8] {
    delivery.message.body.as_deref().unwrap_or_default()
}

/// Waits until a source is up; its last reason is the failure's text.
pub(crate) async fn until_up(health: &aftercommit_core::Signal) {
    let end = Instant::now() + PATIENCE;
    while let Some(reason) = health.reason() {
        assert!(Instant::now() < end, "not up within {PATIENCE:?}: {reason}");
        sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
