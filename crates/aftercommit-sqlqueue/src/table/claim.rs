//! Taking, keeping and mending leases.

use aftercommit_core::Message;
use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::Token;
use crate::clock;
use crate::file::Write;
use crate::message::decode;

/// Leases the oldest messages that are ready.
pub(crate) struct Claim {
    pub(crate) queue: i64,
    pub(crate) token: Token,
    pub(crate) most: i64,
    /// Milliseconds.
    pub(crate) visibility: i64,
}

/// A message of a claim, as the table has it.
pub(crate) struct Claimed {
    pub(crate) position: i64,
    pub(crate) again: bool,
    row: SqliteRow,
}

impl Claimed {
    pub(crate) fn message(&self) -> Message {
        decode(&self.row)
    }
}

/// A lease as its holder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) position: i64,
    pub(crate) token: Token,
}

/// What is over becomes ready, in its old place.
const DUE: &str = "UPDATE aftercommit_queue_messages SET visible_at = 0, token = NULL \
    WHERE queue = ?1 AND visible_at > 0 AND visible_at <= ?2";

const CLAIM: &str = "UPDATE aftercommit_queue_messages \
    SET visible_at = ?2 + ?3, hidden_for = ?3, token = ?4, deliveries = deliveries + 1 \
    WHERE position IN (SELECT position FROM aftercommit_queue_messages \
    WHERE queue = ?1 AND visible_at = 0 ORDER BY position LIMIT ?5) RETURNING position, deliveries";

const CONTENTS: &str = "SELECT c.* FROM json_each(?1) AS claimed \
    JOIN aftercommit_queue_contents AS c ON c.position = claimed.value ORDER BY c.position";

#[async_trait]
impl Write for Claim {
    type Answer = Vec<Claimed>;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<Vec<Claimed>, sqlx::Error> {
        // Asked for under the write lock: a claim never reads an older time than the one before it.
        let now = clock::now();
        sqlx::query(DUE).bind(self.queue).bind(now).execute(&mut *conn).await?;
        let claimed = sqlx::query_as(CLAIM)
            .bind(self.queue)
            .bind(now)
            .bind(self.visibility)
            .bind(&self.token[..])
            .bind(self.most)
            .fetch_all(&mut *conn)
            .await?;
        let deliveries: HashMap<i64, i64> = claimed.into_iter().collect();
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let positions = serde_json::Value::from_iter(deliveries.keys().copied()).to_string();
        let rows = sqlx::query(CONTENTS).bind(positions).fetch_all(conn).await?;
        let claimed = rows.into_iter().map(|row| {
            let position = row.try_get("position")?;
            let again = deliveries.get(&position).is_some_and(|count| *count > 1);
            Ok(Claimed { position, again, row })
        });
        claimed.collect()
    }
}

/// Makes leases last on.
pub(crate) struct Renew {
    pub(crate) leases: Vec<Lease>,
    /// Milliseconds.
    pub(crate) visibility: i64,
}

const RENEW: &str = "UPDATE aftercommit_queue_messages SET visible_at = ?3 + ?4, hidden_for = ?4 \
    WHERE position = ?1 AND token = ?2";

#[async_trait]
impl Write for Renew {
    /// Those that are no longer ours.
    type Answer = Vec<Lease>;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<Vec<Lease>, sqlx::Error> {
        let now = clock::now();
        let mut lost = Vec::new();
        for lease in &self.leases {
            let renewed = sqlx::query(RENEW)
                .bind(lease.position)
                .bind(&lease.token[..])
                .bind(now)
                .bind(self.visibility)
                .execute(&mut *conn)
                .await?;
            if renewed.rows_affected() == 0 {
                lost.push(*lease);
            }
        }
        Ok(lost)
    }
}

/// Lets leases and delays that begin in the future begin now: the clock has jumped back.
pub(crate) struct Mend {
    pub(crate) queue: i64,
}

const MEND: &str = "UPDATE aftercommit_queue_messages SET visible_at = ?2 + hidden_for \
    WHERE queue = ?1 AND visible_at > ?2 AND visible_at - hidden_for > ?2";

#[async_trait]
impl Write for Mend {
    type Answer = u64;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
        let mended = sqlx::query(MEND).bind(self.queue).bind(clock::now()).execute(conn).await?;
        Ok(mended.rows_affected())
    }
}
