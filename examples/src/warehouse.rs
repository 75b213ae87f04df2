//! The SQL of the story. One text serves both databases; only the type of the connection differs.

use aftercommit::sql::sqlx;
use async_trait::async_trait;

/// How many reservations there are, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// An item was there.
    pub reserved: u64,
    /// None was left.
    pub rejected: u64,
    /// Reserved and given back.
    pub cancelled: u64,
}

/// What `inventory-service` does in its database, on a connection that is already inside the inbox's transaction.
#[async_trait]
pub trait Warehouse: Send {
    /// Makes the tables where they are missing and puts `stock` items on the shelf.
    async fn open(&mut self, stock: usize) -> Result<(), sqlx::Error>;

    /// Takes up to `wanted` items and answers how many there were.
    async fn take(&mut self, wanted: usize) -> Result<usize, sqlx::Error>;

    /// Writes reservations: event id, order id, status.
    async fn write(&mut self, rows: &[(&str, &str, &str)]) -> Result<(), sqlx::Error>;

    /// Cancels the reservation of an order and puts its item back; `false` when there is none.
    async fn cancel(&mut self, order_id: &str) -> Result<bool, sqlx::Error>;

    /// Counts the reservations of a run.
    async fn count(&mut self, run: &str) -> Result<Rows, sqlx::Error>;
}

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0));
    CREATE TABLE IF NOT EXISTS reservations
        (event_id text PRIMARY KEY, order_id text NOT NULL UNIQUE, status text NOT NULL)";

macro_rules! warehouse {
    ($feature:literal, $driver:ty, $connection:ty) => {
        #[cfg(feature = $feature)]
        #[async_trait]
        impl Warehouse for $connection {
            async fn open(&mut self, stock: usize) -> Result<(), sqlx::Error> {
                sqlx::raw_sql(TABLES).execute(&mut *self).await?;
                let sql = "INSERT INTO stock (item, available) VALUES ('widget', $1)
                    ON CONFLICT (item) DO UPDATE SET available = excluded.available";
                sqlx::query(sql).bind(number(stock)).execute(self).await.map(drop)
            }

            async fn take(&mut self, wanted: usize) -> Result<usize, sqlx::Error> {
                // An update instead of a select: the row stays ours until the transaction ends.
                let sql = "UPDATE stock SET available = available WHERE item = 'widget' RETURNING available";
                let available: i64 = sqlx::query_scalar(sql).fetch_one(&mut *self).await?;
                let taken = number(wanted).min(available);
                let sql = "UPDATE stock SET available = available - $1 WHERE item = 'widget'";
                sqlx::query(sql).bind(taken).execute(self).await?;
                Ok(usize::try_from(taken).unwrap_or(0))
            }

            async fn write(&mut self, rows: &[(&str, &str, &str)]) -> Result<(), sqlx::Error> {
                let insert = "INSERT INTO reservations (event_id, order_id, status) ";
                let mut query = sqlx::QueryBuilder::<$driver>::new(insert);
                query.push_values(rows, |mut values, (event, order, status)| {
                    values.push_bind(*event).push_bind(*order).push_bind(*status);
                });
                query.build().execute(self).await.map(drop)
            }

            async fn cancel(&mut self, order_id: &str) -> Result<bool, sqlx::Error> {
                let sql = "UPDATE reservations SET status = 'cancelled' WHERE order_id = $1 AND status = 'reserved'";
                let found = sqlx::query(sql).bind(order_id).execute(&mut *self).await?.rows_affected() == 1;
                if found {
                    let sql = "UPDATE stock SET available = available + 1 WHERE item = 'widget'";
                    sqlx::query(sql).execute(self).await?;
                }
                Ok(found)
            }

            async fn count(&mut self, run: &str) -> Result<Rows, sqlx::Error> {
                let sql = "SELECT status, count(*) FROM reservations WHERE event_id LIKE $1 GROUP BY status";
                let found: Vec<(String, i64)> =
                    sqlx::query_as(sql).bind(format!("{run}-%")).fetch_all(self).await?;
                let of = |status: &str| {
                    let count = found.iter().find(|(found, _)| found == status).map_or(0, |(_, count)| *count);
                    count.unsigned_abs()
                };
                Ok(Rows {
                    reserved: of("reserved"),
                    rejected: of("rejected"),
                    cancelled: of("cancelled"),
                })
            }
        }
    };
}

warehouse!("postgres", sqlx::Postgres, sqlx::PgConnection);
warehouse!("sqlite", sqlx::Sqlite, sqlx::SqliteConnection);

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
