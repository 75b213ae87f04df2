//! Reading.

use aftercommit_core::{Binding, Subscription};
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::EVERY_KEY;
use crate::clock;
use crate::topology::dead_letter_queue;

/// What is in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Depth {
    /// Waiting to be handed out.
    pub ready: u64,
    /// Given back for later, and not due yet.
    pub waiting: u64,
    /// Handed out and not settled.
    pub unsettled: u64,
}

impl Depth {
    /// All messages that are not settled.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.ready + self.waiting + self.unsettled
    }
}

/// What a source sees of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub(crate) queue: i64,
    /// Whether a claim would find something.
    pub(crate) something: bool,
}

const LOOK: &str = "SELECT id, EXISTS (SELECT 1 FROM aftercommit_queue_messages \
    WHERE queue = q.id AND visible_at <= ?2) FROM aftercommit_queue_queues AS q WHERE name = ?1";

/// `None`: there is no such queue.
pub(crate) async fn look(conn: &mut SqliteConnection, queue: &str) -> Result<Option<Sight>, sqlx::Error> {
    let row = sqlx::query(LOOK).bind(queue).bind(clock::now()).fetch_optional(conn).await?;
    row.map(|row| Ok(Sight { queue: row.try_get(0)?, something: row.try_get(1)? })).transpose()
}

const FROM_THE_FUTURE: &str = "SELECT EXISTS (SELECT 1 FROM aftercommit_queue_messages \
    WHERE queue = ?1 AND visible_at > ?2 AND visible_at - hidden_for > ?2)";

/// Whether a lease or delay begins in the future. Another process may have begun one since the time was asked for, hence
/// the tolerance.
pub(crate) async fn from_the_future(conn: &mut SqliteConnection, queue: i64) -> Result<bool, sqlx::Error> {
    const TOLERANCE: i64 = 1000;
    sqlx::query_scalar(FROM_THE_FUTURE).bind(queue).bind(clock::now() + TOLERANCE).fetch_one(conn).await
}

const DEPTH: &str = "SELECT count(m.position) FILTER (WHERE visible_at <= ?2), \
    count(m.position) FILTER (WHERE visible_at > ?2 AND token IS NULL), \
    count(m.position) FILTER (WHERE visible_at > ?2 AND token IS NOT NULL) \
    FROM aftercommit_queue_queues AS q LEFT JOIN aftercommit_queue_messages AS m ON m.queue = q.id \
    WHERE q.name = ?1 GROUP BY q.id";

/// `None`: there is no such queue.
pub(crate) async fn depth(conn: &mut SqliteConnection, queue: &str) -> Result<Option<Depth>, sqlx::Error> {
    let row = sqlx::query(DEPTH).bind(queue).bind(clock::now()).fetch_optional(conn).await?;
    let Some(row) = row else { return Ok(None) };
    let count = |column: usize| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)?.unsigned_abs());
    Ok(Some(Depth { ready: count(0)?, waiting: count(1)?, unsettled: count(2)? }))
}

/// What of a subscription's topology is there.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) source: bool,
    pub(crate) dead_letters: bool,
    /// Bindings that lead nowhere or not here.
    pub(crate) unbound: Vec<Binding>,
    /// Whether the file has tables that are not ours.
    pub(crate) shared: bool,
}

const QUEUE: &str = "SELECT EXISTS (SELECT 1 FROM aftercommit_queue_queues WHERE name = ?1)";
const ROUTE: &str = "SELECT EXISTS (SELECT 1 FROM aftercommit_queue_routes AS r \
    JOIN aftercommit_queue_queues AS q ON q.id = r.queue \
    WHERE q.name = ?1 AND r.exchange = ?2 AND r.key IN (?3, ?4))";
const SHARED: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' \
    AND name NOT LIKE 'aftercommit\\_queue\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\')";

pub(crate) async fn found(
    conn: &mut SqliteConnection,
    subscription: &Subscription,
) -> Result<Found, sqlx::Error> {
    let source = sqlx::query_scalar(QUEUE).bind(&subscription.source).fetch_one(&mut *conn).await?;
    let dead = dead_letter_queue(subscription);
    let dead_letters = sqlx::query_scalar(QUEUE).bind(dead).fetch_one(&mut *conn).await?;
    let mut unbound = Vec::new();
    for binding in &subscription.bindings {
        let bound = if binding.from.is_empty() {
            binding.key == subscription.source
        } else {
            sqlx::query_scalar(ROUTE)
                .bind(&subscription.source)
                .bind(&binding.from)
                .bind(&binding.key)
                .bind(EVERY_KEY)
                .fetch_one(&mut *conn)
                .await?
        };
        if !bound {
            unbound.push(binding.clone());
        }
    }
    let shared = sqlx::query_scalar(SHARED).fetch_one(conn).await?;
    Ok(Found { source, dead_letters, unbound, shared })
}
