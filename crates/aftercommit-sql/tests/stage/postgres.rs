use std::net::ToSocketAddrs;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aftercommit_conformance::proxy::{Direction, Pattern, Proxy};
use aftercommit_conformance::store::{Ability, Act, Attempts, Lost, StoreFixture, StoreStage};
use aftercommit_core::BoxError;
use aftercommit_sql::{PgInbox, PgInboxOptions, PgSession};
use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

/// The shared server; each trial has a schema of its own.
pub(crate) struct Fixture;

#[async_trait]
impl StoreFixture<PgInbox> for Fixture {
    async fn stage(&self, _trial: &str) -> Result<Arc<dyn StoreStage<PgInbox>>, BoxError> {
        let url = xtask::services::postgres::url()?;
        Ok(Arc::new(Stage::new(&url).await?))
    }

    fn absent(&self) -> Vec<(Ability, &'static str)> {
        vec![
            (Ability::EndInStatement, "a failed statement fails the transaction and does not end it"),
            (Ability::GuardedCommit, "the server commits what it is told to commit"),
        ]
    }
}

pub(crate) struct Stage {
    server: PgConnectOptions,
    schema: String,
    proxies: Mutex<Vec<Proxy>>,
}

impl Stage {
    pub(crate) async fn new(url: &str) -> Result<Self, BoxError> {
        let schema = super::name();
        // The server says by this name which connections are the stage's.
        let server = PgConnectOptions::from_str(url)?.application_name(&schema);
        let stage = Self { server, schema, proxies: Mutex::default() };
        let tables = "CREATE SCHEMA {s}; CREATE TABLE {s}.parents (id integer PRIMARY KEY); \
            CREATE TABLE {s}.effects (value text NOT NULL, \
            parent integer REFERENCES {s}.parents DEFERRABLE INITIALLY DEFERRED)";
        stage.outside(tables).await?;
        Ok(stage)
    }

    pub(crate) fn options(&self) -> PgInboxOptions {
        PgInboxOptions::default().schema(self.schema.as_str()).unwrap_or_default()
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn server(&self) -> PgConnectOptions {
        self.server.clone()
    }

    fn sql(&self, sql: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(sql.replace("{s}", &self.schema))
    }

    /// A connection of its own that is not counted as the stage's.
    pub(crate) async fn look(&self) -> Result<PgConnection, BoxError> {
        let looking = self.server.clone().application_name("looking").connect().await;
        looking.map_err(|error| format!("PostgreSQL is not there ({error}): cargo xtask services up").into())
    }

    /// Runs SQL from outside, `{s}` being the schema.
    pub(crate) async fn outside(&self, sql: &str) -> Result<(), BoxError> {
        let mut conn = self.look().await?;
        sqlx::raw_sql(self.sql(sql)).execute(&mut conn).await?;
        Ok(conn.close().await?)
    }

    pub(crate) async fn store_at(
        &self,
        server: PgConnectOptions,
        connections: u32,
        options: PgInboxOptions,
    ) -> Result<PgInbox, BoxError> {
        let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(Duration::from_secs(1));
        Ok(PgInbox::with_options(pool.connect_lazy_with(server), options))
    }
}

#[async_trait]
impl StoreStage<PgInbox> for Stage {
    async fn store(&self, connections: u32) -> Result<PgInbox, BoxError> {
        self.store_at(self.server(), connections, self.options()).await
    }

    async fn migrate(&self, store: &PgInbox) -> Result<(), BoxError> {
        Ok(store.migrate().await?)
    }

    async fn act(&self, db: &mut PgConnection, act: Act<'_>) -> Result<(), BoxError> {
        let insert = self.sql("INSERT INTO {s}.effects (value) VALUES ($1)");
        match act {
            Act::Effect(value) => {
                sqlx::query(insert).bind(value).execute(db).await?;
            }
            Act::Nested(value) => {
                let mut nested = db.begin().await?;
                sqlx::query(insert).bind(value).execute(&mut *nested).await?;
                nested.commit().await?;
            }
            Act::NestedUndone(value) => {
                let mut nested = db.begin().await?;
                sqlx::query(insert).bind(value).execute(&mut *nested).await?;
                nested.rollback().await?;
            }
            Act::DeleteClaim { consumer, id } => {
                let sql =
                    self.sql("DELETE FROM {s}.inbox_messages WHERE consumer_name = $1 AND message_id = $2");
                sqlx::query(sql).bind(consumer).bind(id).execute(db).await?;
            }
            Act::CommitAndBegin => {
                let committed = sqlx::raw_sql("COMMIT").execute(&mut *db).await;
                sqlx::raw_sql("BEGIN").execute(db).await?;
                committed?;
            }
            plain => {
                sqlx::raw_sql(self.sql(statement(plain)?)).execute(db).await?;
            }
        }
        Ok(())
    }

    async fn effects(&self) -> Result<Vec<String>, BoxError> {
        let sql = self.sql("SELECT value FROM {s}.effects ORDER BY value COLLATE \"C\"");
        Ok(sqlx::query_scalar(sql).fetch_all(&mut self.look().await?).await?)
    }

    async fn claims(&self) -> Result<Vec<(String, String)>, BoxError> {
        let sql = self.sql("SELECT consumer_name, message_id FROM {s}.inbox_messages ORDER BY 1, 2");
        Ok(sqlx::query_as(sql).fetch_all(&mut self.look().await?).await?)
    }

    async fn attempts(&self) -> Result<Vec<Attempts>, BoxError> {
        let sql = self.sql(
            "SELECT consumer_name, message_id, failures, starts, last_error FROM {s}.inbox_attempts ORDER BY 1, 2",
        );
        let rows = sqlx::query(sql).fetch_all(&mut self.look().await?).await?;
        rows.iter()
            .map(|row| {
                Ok(Attempts {
                    consumer: row.try_get(0)?,
                    id: row.try_get(1)?,
                    failures: row.try_get::<i32, _>(2)?.try_into()?,
                    starts: row.try_get::<i32, _>(3)?.try_into()?,
                    last_error: row.try_get(4)?,
                })
            })
            .collect()
    }

    async fn open_transactions(&self) -> Result<usize, BoxError> {
        let sql =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND xact_start IS NOT NULL";
        let open: i64 = sqlx::query_scalar(sql).bind(&self.schema).fetch_one(&mut self.look().await?).await?;
        Ok(open.try_into()?)
    }

    async fn unsafe_stores(&self) -> Result<Vec<(&'static str, PgInbox)>, BoxError> {
        let asynchronous = self.server().options([("synchronous_commit", "off")]);
        let asynchronous = self.store_at(asynchronous, 3, self.options()).await?;
        let unlogged = self.store_at(self.server(), 3, self.options().table_prefix("u_")?).await?;
        unlogged.migrate().await?;
        self.outside("ALTER TABLE {s}.u_inbox_messages SET UNLOGGED").await?;
        Ok(vec![("synchronous_commit = off", asynchronous), ("u_inbox_messages is not logged", unlogged)])
    }

    async fn pretend_newer(&self) -> Result<(), BoxError> {
        self.outside("INSERT INTO {s}.inbox_schema_versions (version, name) VALUES (1000, 'later')").await
    }

    async fn kill(&self) -> Result<(), BoxError> {
        let sql = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1";
        sqlx::query(sql).bind(&self.schema).execute(&mut self.look().await?).await?;
        Ok(())
    }

    async fn losing(&self, lost: Lost) -> Result<PgInbox, BoxError> {
        let mut upstream = (self.server.get_host(), self.server.get_port()).to_socket_addrs()?;
        let proxy = Proxy::start(upstream.next().ok_or("the server's name has no address")?)?;
        let _fires = match lost {
            Lost::Request => proxy.cut_before(Direction::ToServer, Pattern::bytes(*b"COMMIT\0")),
            Lost::Answer => proxy.cut_before(Direction::ToClient, Pattern::bytes(*b"C\0\0\0\x0bCOMMIT\0")),
        };
        let through = self.server().host("127.0.0.1").port(proxy.addr().port());
        if let Ok(mut proxies) = self.proxies.lock() {
            proxies.push(proxy);
        }
        self.store_at(through, 3, self.options()).await
    }

    async fn strike(&self) -> Result<(), BoxError> {
        self.kill().await?;
        self.outside("DROP SCHEMA {s} CASCADE").await
    }
}

fn statement(act: Act<'_>) -> Result<&'static str, BoxError> {
    Ok(match act {
        Act::Fail => "SELECT 1 / 0",
        Act::Misleading => {
            "DO $$ BEGIN RAISE EXCEPTION 'deadlock detected: could not serialize, connection timed out'; END $$"
        }
        Act::ForeignConflict => {
            "DO $$ BEGIN RAISE EXCEPTION 'не удалось сериализовать доступ' USING ERRCODE = '40001'; END $$"
        }
        Act::Rollback => "ROLLBACK",
        Act::Commit => "COMMIT",
        Act::RefuseAtCommit => "INSERT INTO {s}.effects (value, parent) VALUES ('orphan', 42)",
        Act::UnsafeCommit => "SET LOCAL synchronous_commit = off",
        other => return Err(format!("this stage cannot do {other:?}").into()),
    })
}

/// A session inside a transaction that claimed one id of `billing`.
pub(crate) async fn claimed(store: &PgInbox, id: &str) -> Result<PgSession, BoxError> {
    use aftercommit_core::{ConsumerName, MessageId};
    use aftercommit_inbox::{InboxStore, Session};
    let mut session = store.open().await?;
    session.begin().await?;
    let ours = session.claim(&ConsumerName::new("billing")?, &[&MessageId::new(id)?]).await?;
    if ours == [true] { Ok(session) } else { Err(format!("{id} is a duplicate").into()) }
}
