//! A queue in an SQLite file as the suites see it: a file of its own for each trial.
//!
//! What the suites do to connections is done to what this product has in their place:
//! - **cut**: every lease is ended from outside, as its timeout does to a process that was frozen. Whoever holds a delivery
//!   has lost it and is not told.
//! - **take down**: the file's folder is moved away, as a disk that is unmounted.
//! - **stall**: another process holds the write lock and does not let go.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_conformance::broker::{Ability, BrokerFixture, Depth, Part, Stage};
use aftercommit_core::{BoxError, Broker, Destination, HeaderValue, Headers, Subscription};
use aftercommit_sqlqueue::Config;
use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use tokio::sync::Mutex;

const KEY: &str = "key";
const LARGEST: usize = 4 << 20;
const DEADLINE: Duration = Duration::from_secs(2);

pub(crate) struct Fixture;

#[async_trait]
impl BrokerFixture for Fixture {
    fn product(&self) -> &'static str {
        "sqlqueue"
    }

    async fn stage(&self, _trial: &str) -> Result<Arc<dyn Stage>, BoxError> {
        let stage = QueueStage { folder: tempfile::tempdir()?, stalled: Mutex::new(None) };
        std::fs::create_dir(stage.disk())?;
        Ok(Arc::new(stage))
    }

    fn absent(&self) -> Vec<(Ability, &'static str)> {
        vec![
            (Ability::Restart, "there is no server; processes that die are tests of their own"),
            (Ability::Full, "a queue has no limit; a full disk is a test of its own"),
            (Ability::OtherSettings, "a queue has no settings"),
            (Ability::DroppingLimit, "a queue has no limit"),
        ]
    }
}

struct QueueStage {
    folder: TempDir,
    /// Holds the write lock while publishers shall get no answer.
    stalled: Mutex<Option<SqliteConnection>>,
}

const END_LEASES: &str =
    "UPDATE aftercommit_queue_messages SET visible_at = 0, token = NULL WHERE token IS NOT NULL";

impl QueueStage {
    fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn away(&self) -> PathBuf {
        self.folder.path().join("away")
    }

    /// A connection of the operator.
    async fn operator(&self) -> Result<SqliteConnection, BoxError> {
        let file = SqliteConnectOptions::new().filename(self.disk().join("queue.db"));
        Ok(file.busy_timeout(Duration::from_secs(10)).connect().await?)
    }

    fn exchange(topic: &str) -> String {
        format!("events.{topic}")
    }

    fn dead_letters(subscription: &Subscription) -> String {
        format!("{}.{}.dead", subscription.source, subscription.consumer)
    }
}

#[async_trait]
impl Stage for QueueStage {
    async fn connect(&self) -> Result<Arc<dyn Broker>, BoxError> {
        let config = Config::at(self.disk().join("queue.db"))?
            .with_visibility(Duration::from_secs(3))?
            .with_publish_deadline(DEADLINE)?
            .with_max_message_size(LARGEST)?;
        Ok(aftercommit_sqlqueue::connect(config).await?)
    }

    fn subscription(&self, consumer: &str, topic: &str) -> Result<Subscription, BoxError> {
        let source = format!("{topic}.{consumer}");
        Ok(Subscription::new(consumer, source)?.with_binding(Self::exchange(topic), KEY))
    }

    fn destination(&self, topic: &str) -> Destination {
        Destination::new(Self::exchange(topic)).with_routing_key(KEY)
    }

    async fn depth(&self, subscription: &Subscription) -> Result<Depth, BoxError> {
        const DEPTH: &str = "SELECT count(position), count(token) FROM aftercommit_queue_queues AS q \
            LEFT JOIN aftercommit_queue_messages AS m ON m.queue = q.id WHERE name = ?1 GROUP BY q.id";
        let mut operator = self.operator().await?;
        let found: Option<(i64, i64)> =
            sqlx::query_as(DEPTH).bind(&subscription.source).fetch_optional(&mut operator).await?;
        let (all, unsettled) = found.ok_or("there is no such queue")?;
        Ok(Depth { ready: u64::try_from(all - unsettled)?, unsettled: u64::try_from(unsettled)? })
    }

    fn publish_deadline(&self) -> Duration {
        DEADLINE
    }

    fn native(&self) -> Headers {
        [("content_type".to_owned(), HeaderValue::ShortText("application/json".into()))].into_iter().collect()
    }

    fn too_large(&self) -> usize {
        LARGEST + 1
    }

    async fn unroutable(&self) -> Result<Destination, BoxError> {
        let sql = "INSERT INTO aftercommit_queue_exchanges (name) VALUES ('nowhere')";
        sqlx::raw_sql(sql).execute(&mut self.operator().await?).await?;
        Ok(Destination::new("nowhere").with_routing_key(KEY))
    }

    async fn cut(&self) -> Result<(), BoxError> {
        // While the write lock is held nobody else could.
        if let Some(holder) = self.stalled.lock().await.as_mut() {
            sqlx::raw_sql(END_LEASES).execute(holder).await?;
            return Ok(());
        }
        sqlx::raw_sql(END_LEASES).execute(&mut self.operator().await?).await?;
        Ok(())
    }

    async fn take_down(&self) -> Result<(), BoxError> {
        Ok(std::fs::rename(self.disk(), self.away())?)
    }

    async fn bring_up(&self) -> Result<(), BoxError> {
        Ok(std::fs::rename(self.away(), self.disk())?)
    }

    async fn stall(&self) -> Result<(), BoxError> {
        let mut holder = self.operator().await?;
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await?;
        *self.stalled.lock().await = Some(holder);
        Ok(())
    }

    async fn go_on(&self) -> Result<(), BoxError> {
        let mut holder = self.stalled.lock().await.take().ok_or("it is not stalled")?;
        sqlx::raw_sql("COMMIT").execute(&mut holder).await?;
        Ok(holder.close().await?)
    }

    async fn remove(&self, part: Part, subscription: &Subscription) -> Result<(), BoxError> {
        const QUEUE: &str = "DELETE FROM aftercommit_queue_queues WHERE name = ?1";
        const ROUTES: &str = "DELETE FROM aftercommit_queue_routes \
            WHERE queue = (SELECT id FROM aftercommit_queue_queues WHERE name = ?1)";
        let (sql, queue) = match part {
            Part::Source => (QUEUE, subscription.source.clone()),
            Part::DeadLetter => (QUEUE, Self::dead_letters(subscription)),
            Part::Route => (ROUTES, subscription.source.clone()),
        };
        sqlx::query(sql).bind(queue).execute(&mut self.operator().await?).await?;
        Ok(())
    }
}
