use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;

use super::EVERY_KEY;
use crate::clock;
use crate::file::Write;
use crate::message::Envelope;

/// Puts a message into every queue that its destination leads to.
pub(crate) struct Publish {
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) envelope: Envelope,
}

/// Where a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routed {
    /// Kept, here first.
    Kept(i64),
    NoRoute,
    NoExchange,
}

const MESSAGE: &str = "INSERT INTO aftercommit_queue_messages (queue) \
    SELECT id FROM aftercommit_queue_queues WHERE id IN (\
    SELECT queue FROM aftercommit_queue_routes WHERE exchange = ?1 AND key IN (?2, ?3) \
    UNION SELECT id FROM aftercommit_queue_queues WHERE ?1 = '' AND name = ?2) \
    ORDER BY id RETURNING position";

const CONTENTS: &str = "INSERT INTO aftercommit_queue_contents (position, published_at, exchange, routing_key, \
    message_id, event_type, schema_version, aggregate_id, trace_id, correlation_id, occurred_at, occurred_nanos, \
    occurred_offset, key, headers, native, body) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const EXCHANGE: &str = "SELECT ?1 = '' OR EXISTS (SELECT 1 FROM aftercommit_queue_exchanges WHERE name = ?1)";

#[async_trait]
impl Write for Publish {
    type Answer = Routed;

    const NEEDS_LISTENER: bool = true;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<Routed, sqlx::Error> {
        let positions: Vec<i64> = sqlx::query_scalar(MESSAGE)
            .bind(&self.exchange)
            .bind(&self.routing_key)
            .bind(EVERY_KEY)
            .fetch_all(&mut *conn)
            .await?;
        for position in &positions {
            self.insert_contents(conn, *position).await?;
        }
        if let Some(first) = positions.first() {
            return Ok(Routed::Kept(*first));
        }
        let there: bool = sqlx::query_scalar(EXCHANGE).bind(&self.exchange).fetch_one(conn).await?;
        Ok(if there { Routed::NoRoute } else { Routed::NoExchange })
    }

    fn shows(answer: &Routed) -> bool {
        matches!(answer, Routed::Kept(_))
    }
}

impl Publish {
    async fn insert_contents(&self, conn: &mut SqliteConnection, position: i64) -> Result<(), sqlx::Error> {
        let message = &self.envelope.message;
        let occurred = self.envelope.occurred();
        sqlx::query(CONTENTS)
            .bind(position)
            .bind(clock::now())
            .bind(&self.exchange)
            .bind(&self.routing_key)
            .bind(message.id.as_deref())
            .bind(&message.event_type)
            .bind(&message.schema_version)
            .bind(&message.aggregate_id)
            .bind(&message.trace_id)
            .bind(&message.correlation_id)
            .bind(occurred.map(|(seconds, ..)| seconds))
            .bind(occurred.map(|(_, nanos, _)| nanos))
            .bind(occurred.map(|(.., offset)| offset))
            .bind(message.key.as_deref())
            .bind(&self.envelope.headers)
            .bind(&self.envelope.native)
            .bind(message.body.as_deref())
            .execute(conn)
            .await
            .map(drop)
    }
}
