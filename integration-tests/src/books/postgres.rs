//! PostgreSQL: a schema for each trial on the server that all tests share.

use std::str::FromStr as _;
use std::sync::Arc;

use aftercommit_conformance::inbox::{Books, Effect, Ledger};
use aftercommit_core::{BoxError, Failure};
use aftercommit_sql::sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use aftercommit_sql::sqlx::{self, AssertSqlSafe, ConnectOptions as _};
use aftercommit_sql::{PgInbox, PgInboxOptions};
use async_trait::async_trait;

/// The shared server (`AFTERCOMMIT_POSTGRES_URL`, or the one of `cargo xtask services up`), with a
/// new schema for each trial, dropped at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostgresBooks;

#[async_trait]
impl Books for PostgresBooks {
    type Store = PgInbox;

    fn product(&self) -> &'static str {
        "postgres"
    }

    async fn open(&self, _trial: &str) -> Result<Arc<dyn Ledger<PgInbox>>, BoxError> {
        let server = PgConnectOptions::from_str(&xtask::services::postgres::url()?)
            .map_err(|_| "AFTERCOMMIT_POSTGRES_URL is not a PostgreSQL URL")?;
        let schema = format!("trial_{}", uuid::Uuid::new_v4().simple());
        let ledger = PgLedger { server, schema };
        let mut db = ledger.connect().await?;
        let sql = format!(
            "CREATE SCHEMA {schema}; CREATE TABLE {schema}.effects \
             (number bigserial, consumer text NOT NULL, id bytea NOT NULL, note text NOT NULL); \
             CREATE TABLE {schema}.taken (one integer PRIMARY KEY); INSERT INTO {schema}.taken VALUES (1)",
            schema = ledger.schema
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut db).await?;
        ledger.store().await?.migrate().await?;
        Ok(Arc::new(ledger))
    }
}

struct PgLedger {
    server: PgConnectOptions,
    schema: String,
}

impl PgLedger {
    async fn connect(&self) -> Result<PgConnection, BoxError> {
        let place = format!("{}:{}", self.server.get_host(), self.server.get_port());
        self.server.connect().await.map_err(|error| {
            format!("PostgreSQL at {place} cannot be reached ({error}): run `cargo xtask services up`").into()
        })
    }

    fn pool(&self) -> PgPool {
        // Handlers find their own tables by the schema.
        let server = self.server.clone().options([("search_path", self.schema.as_str())]);
        PgPoolOptions::new().max_connections(6).connect_lazy_with(server)
    }

    fn fill(&self, sql: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(sql.replace("{schema}", &self.schema))
    }
}

#[async_trait]
impl Ledger<PgInbox> for PgLedger {
    async fn store(&self) -> Result<PgInbox, BoxError> {
        let options = PgInboxOptions::default().schema(self.schema.clone())?;
        Ok(PgInbox::with_options(self.pool(), options))
    }

    async fn record(&self, db: &mut PgConnection, effect: &Effect) -> Result<(), Failure> {
        sqlx::query("INSERT INTO effects (consumer, id, note) VALUES ($1, $2, $3)")
            .bind(&effect.consumer)
            .bind(&effect.id)
            .bind(&effect.note)
            .execute(db)
            .await?;
        Ok(())
    }

    async fn stumble(&self, db: &mut PgConnection) -> Result<(), Failure> {
        sqlx::raw_sql("INSERT INTO taken VALUES (1)").execute(db).await?;
        Ok(())
    }

    async fn raw(&self, db: &mut PgConnection, sql: &'static str) -> Result<(), Failure> {
        sqlx::raw_sql(sql).execute(db).await?;
        Ok(())
    }

    async fn effects(&self) -> Result<Vec<Effect>, BoxError> {
        let sql = self.fill("SELECT consumer, id, note FROM {schema}.effects ORDER BY number");
        let rows: Vec<(String, Vec<u8>, String)> =
            sqlx::query_as(sql).fetch_all(&mut self.connect().await?).await?;
        Ok(rows.into_iter().map(|(consumer, id, note)| Effect { consumer, id, note }).collect())
    }

    async fn handled(&self) -> Result<Vec<(String, String)>, BoxError> {
        let sql = self.fill("SELECT consumer_name, message_id FROM {schema}.inbox_messages");
        Ok(sqlx::query_as(sql).fetch_all(&mut self.connect().await?).await?)
    }

    async fn failures(&self) -> Result<u64, BoxError> {
        let sql = self.fill("SELECT coalesce(sum(failures), 0)::bigint FROM {schema}.inbox_attempts");
        let sum: i64 = sqlx::query_scalar(sql).fetch_one(&mut self.connect().await?).await?;
        Ok(u64::try_from(sum)?)
    }

    async fn strike(&self) -> Result<(), BoxError> {
        let sql = self.fill("DROP SCHEMA {schema} CASCADE");
        sqlx::raw_sql(sql).execute(&mut self.connect().await?).await?;
        Ok(())
    }
}
