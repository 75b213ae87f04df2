use async_trait::async_trait;
use sqlx::Row as _;
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

const INSERT: &str = "INSERT INTO aftercommit_queue_messages (queue, published_at, exchange, routing_key, message_id, \
    event_type, schema_version, aggregate_id, trace_id, correlation_id, occurred_at, occurred_nanos, \
    occurred_offset, key, headers, native, body) \
    SELECT id, ?4, ?1, ?2, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17 \
    FROM aftercommit_queue_queues WHERE id IN (\
    SELECT queue FROM aftercommit_queue_routes WHERE exchange = ?1 AND key IN (?2, ?3) \
    UNION SELECT id FROM aftercommit_queue_queues WHERE ?1 = '' AND name = ?2) \
    ORDER BY id RETURNING position";

const EXCHANGE: &str = "SELECT ?1 = '' OR EXISTS (SELECT 1 FROM aftercommit_queue_exchanges WHERE name = ?1)";

#[async_trait]
impl Write for Publish {
    type Answer = Routed;

    const NEEDS_LISTENER: bool = true;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<Routed, sqlx::Error> {
        let message = &self.envelope.message;
        let occurred = self.envelope.occurred();
        let rows = sqlx::query(INSERT)
            .bind(&self.exchange)
            .bind(&self.routing_key)
            .bind(EVERY_KEY)
            .bind(clock::now())
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
            .fetch_all(&mut *conn)
            .await?;
        if let Some(first) = rows.first() {
            return first.try_get(0).map(Routed::Kept);
        }
        let there: bool = sqlx::query_scalar(EXCHANGE).bind(&self.exchange).fetch_one(conn).await?;
        Ok(if there { Routed::NoRoute } else { Routed::NoExchange })
    }

    fn shows(answer: &Routed) -> bool {
        matches!(answer, Routed::Kept(_))
    }
}
