//! Ending leases, only ever with their token.

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;

use super::Lease;
use crate::clock;
use crate::file::Write;

/// Removes a message. Answers whether it was ours.
pub(crate) struct Ack(pub(crate) Lease);

const ACK: &str = "DELETE FROM aftercommit_queue_messages WHERE position = ?1 AND token = ?2";

#[async_trait]
impl Write for Ack {
    type Answer = bool;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let Lease { position, token } = &self.0;
        let done = sqlx::query(ACK).bind(position).bind(&token[..]).execute(conn).await?;
        // Its contents go with it.
        Ok(done.rows_affected() == 1)
    }
}

/// Makes a message ready, after a delay if there is one. Answers whether it was ours.
pub(crate) struct GiveBack {
    pub(crate) lease: Lease,
    /// Milliseconds.
    pub(crate) after: Option<i64>,
}

const GIVE_BACK: &str = "UPDATE aftercommit_queue_messages SET visible_at = ?3, hidden_for = ?4, token = NULL \
    WHERE position = ?1 AND token = ?2";

#[async_trait]
impl Write for GiveBack {
    type Answer = bool;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let due = self.after.map_or(0, |after| clock::now().saturating_add(after));
        give_back(conn, &self.lease, due, self.after.unwrap_or_default()).await
    }

    fn shows(ours: &bool) -> bool {
        *ours
    }
}

async fn give_back(
    conn: &mut SqliteConnection,
    lease: &Lease,
    due: i64,
    hidden_for: i64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(GIVE_BACK)
        .bind(lease.position)
        .bind(&lease.token[..])
        .bind(due)
        .bind(hidden_for)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Makes everything ready that a source has not settled.
pub(crate) struct Release(pub(crate) Vec<Lease>);

#[async_trait]
impl Write for Release {
    type Answer = ();

    async fn run(&self, conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for lease in &self.0 {
            // What is no longer ours is ready or with somebody else.
            give_back(conn, lease, 0, 0).await?;
        }
        Ok(())
    }

    fn shows((): &()) -> bool {
        true
    }
}

/// Changes nothing, and fails where a change would.
pub(crate) struct TryToWrite;

#[async_trait]
impl Write for TryToWrite {
    type Answer = ();

    async fn run(&self, conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("DELETE FROM aftercommit_queue_messages WHERE false").execute(conn).await.map(drop)
    }
}
