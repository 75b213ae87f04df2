//! Poolers in transaction mode, which give each transaction another server connection.
//!
//! One that does not follow prepared statements is worse than an error: under a name of ours it may
//! run a statement of somebody else.

use std::time::Duration;

use aftercommit_inbox::{Fault, StoreError};
use sqlx::postgres::PgConnection;

use super::fault;
use super::session::within;

/// Whether statements that are prepared once are found again. `second` prepares one, `first` then
/// takes the server connection that it was prepared on, if a pooler has lent it for that moment only.
///
/// An error leaves both connections in doubt.
pub(super) async fn follows_statements(
    first: &mut PgConnection,
    second: &mut PgConnection,
) -> Result<(), StoreError> {
    let asked = async {
        ask(second).await?;
        sqlx::raw_sql("BEGIN").execute(&mut *first).await?;
        ask(second).await?;
        sqlx::raw_sql("ROLLBACK").execute(first).await.map(drop)
    };
    within(Duration::from_secs(10), asked).await.map_err(|source| match source {
        sqlx::Error::Io(_) => {
            let what = "no answer beside an open transaction: does the pooler in front of PostgreSQL \
                have server connections enough (its default_pool_size)?";
            StoreError::new(Fault::Unavailable, what).with_source(source)
        }
        source => fault::error(fault::of_statement(&source), "preparing a statement", source),
    })
}

async fn ask(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT 1").persistent(true).execute(conn).await.map(drop)
}
