//! A fresh queue and a fresh schema for one run, filled before and counted after it, from outside.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::try_join_all;
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::error::{Error, Result};
use crate::place::Place;

const BODY: usize = 200;
/// How many publishes wait for their confirms at once.
const WINDOW: u32 = 1_000;

/// One run's own queue and schema, of the same name.
pub(crate) struct Arena {
    pub(crate) place: Place,
    pub(crate) name: String,
    connection: Connection,
    channel: Channel,
    database: PgConnection,
    wal: i64,
}

/// What the database holds after a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Transactions that wrote business rows.
    pub(crate) commits: i64,
    pub(crate) wal_bytes: i64,
    /// Confirmations that the broker lost with the connection.
    pub(crate) left: u32,
}

impl Arena {
    pub(crate) async fn open(place: &Place) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench_{}_{}_{number}", since.as_secs(), std::process::id());
        let mut database = place.connect().await?;
        sqlx::raw_sql(AssertSqlSafe(format!(
            "CREATE SCHEMA {name}; CREATE TABLE {name}.effects (message_id text NOT NULL, body bytea NOT NULL)"
        )))
        .execute(&mut database)
        .await?;
        let connection = Connection::connect(&place.amqp, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self { place: place.clone(), name, connection, channel, database, wal: 0 })
    }

    /// The database with this run's schema first.
    pub(crate) fn postgres(&self) -> PgConnectOptions {
        self.place.postgres.clone().options([("search_path", &self.name)])
    }

    pub(crate) async fn declare(&self) -> Result<()> {
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        self.channel.queue_declare(self.name.as_str().into(), options, arguments).await?;
        Ok(())
    }

    /// Publishes the messages of these numbers, persistent, and waits for every confirm. The same
    /// number is the same message id.
    pub(crate) async fn fill(&self, messages: u32) -> Result<()> {
        for first in (0..messages).step_by(WINDOW as usize) {
            let numbers = first..messages.min(first + WINDOW);
            try_join_all(numbers.map(|number| self.publish(number))).await?;
        }
        Ok(())
    }

    pub(crate) async fn publish(&self, number: u32) -> Result<()> {
        let properties = BasicProperties::default().with_delivery_mode(2).with_message_id(id(number).into());
        let (options, body) = (BasicPublishOptions::default(), body());
        let published =
            self.channel.basic_publish("".into(), self.name.as_str().into(), options, &body, properties);
        match published.await?.await? {
            Confirmation::Ack(None) => Ok(()),
            other => Err(Error::new(format!("a message was not confirmed: {other:?}"))),
        }
    }

    /// The last thing before a run: what the filling left to do must not fall into it.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        // Not every role may; then a checkpoint may come at any time, for both sides alike.
        let _ = sqlx::raw_sql("CHECKPOINT").execute(&mut self.database).await;
        self.wal = self.wal_position().await?;
        Ok(())
    }

    async fn wal_position(&mut self) -> Result<i64> {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        Ok(sqlx::query_scalar(sql).fetch_one(&mut self.database).await?)
    }

    /// Holds the run to its promise: every message one row, every message confirmed.
    pub(crate) async fn verify(&mut self, messages: u32, prefetch: u16) -> Result<Counted> {
        let wal_bytes = self.wal_position().await? - self.wal;
        let sql = "SELECT count(*), count(DISTINCT message_id), count(DISTINCT xmin::text) FROM";
        let sql = AssertSqlSafe(format!("{sql} {}.effects", self.name));
        let (rows, ids, commits): (i64, i64, i64) = sqlx::query_as(sql).fetch_one(&mut self.database).await?;
        if rows != i64::from(messages) || ids != rows {
            return Err(Error::new(format!("{messages} messages, but {rows} rows of {ids} ids")));
        }
        let left = self.left().await?;
        if left > u32::from(prefetch) {
            return Err(Error::new(format!("{left} messages are still in the queue")));
        }
        Ok(Counted { commits, wal_bytes, left })
    }

    /// What was not confirmed is back in the queue once its consumer is gone. A quorum queue may lose
    /// confirmations that were under way when the connection ended, so those messages come again: at
    /// most a prefetch of them, and each marked as delivered before.
    async fn left(&self) -> Result<u32> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            let queue = self.channel.queue_declare(self.name.as_str().into(), passive, FieldTable::default());
            if queue.await?.consumer_count() == 0 {
                break;
            }
            if Instant::now() > deadline {
                return Err(Error::new("the consumer is still there"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut left = 0;
        let get = || self.channel.basic_get(self.name.as_str().into(), BasicGetOptions { no_ack: true });
        while let Some(message) = get().await? {
            if !message.delivery.redelivered {
                return Err(Error::new("a message was never delivered"));
            }
            left += 1;
        }
        Ok(left)
    }

    /// Removes schema and queues; `more` are those that the product made beside the queue.
    pub(crate) async fn close(mut self, more: Option<String>) -> Result<()> {
        sqlx::raw_sql(AssertSqlSafe(format!("DROP SCHEMA {} CASCADE", self.name)))
            .execute(&mut self.database)
            .await?;
        for queue in std::iter::once(self.name.as_str()).chain(more.as_deref()) {
            self.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await?;
        }
        self.connection.close(200, "closed".into()).await?;
        self.database.close().await?;
        Ok(())
    }
}

/// Unlike its neighbours, as ids usually are: an index must not profit from an order.
fn id(number: u32) -> String {
    let mixed = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{mixed:016x}-{number:08x}")
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn body() -> Vec<u8> {
    let now = u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut body = vec![b'x'; BODY];
    body[..8].copy_from_slice(&now.to_le_bytes());
    body
}

/// When a message was published, as its body says.
pub(crate) fn sent_at(body: &[u8]) -> u64 {
    body.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// A moment on the clock of [`sent_at`].
pub(crate) fn clock(moment: Instant) -> u64 {
    u64::try_from(moment.saturating_duration_since(*START).as_nanos()).unwrap_or(u64::MAX)
}
