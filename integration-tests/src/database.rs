//! A schema of its own with an inbox and an effects table, looked at over a connection of its own.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use aftercommit_core::Failure;
use aftercommit_sql::{PgInbox, PgInboxOptions};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::until::{PATIENCE, until};

/// The effects table has no unique key: it would hide an inbox that does not work.
const EFFECTS: &str = "CREATE TABLE effects (message_id text COLLATE \"C\" NOT NULL, note text, \
    at timestamptz NOT NULL DEFAULT clock_timestamp())";

/// How long the pools here wait for a connection.
pub const WAIT_FOR_CONNECTION: Duration = Duration::from_secs(3);

/// One test's part of a PostgreSQL server. All its sessions carry the schema's name as application name and find its
/// tables without a schema.
#[derive(Clone, Debug)]
pub struct Database {
    server: PgConnectOptions,
    schema: String,
}

impl Database {
    /// Makes schema, inbox and effects table.
    ///
    /// # Panics
    ///
    /// When the server does not let it; the text names the command that starts the shared one.
    ///
    /// # Cancel safety
    ///
    /// A part of it may have been made.
    pub async fn create(url: &str, name: &str) -> Self {
        let schema = format!("{name}_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let database = Self::existing(url, schema);
        let mut conn = PgConnection::connect_with(&database.server).await.unwrap_or_else(|error| {
            panic!("PostgreSQL at {url}: {error}\nThe tests need it: start it with `cargo xtask services up postgres`")
        });
        let sql = format!("CREATE SCHEMA {}", database.schema);
        conn.execute(AssertSqlSafe(sql)).await.expect("a new schema");
        conn.execute(EFFECTS).await.expect("the effects table");
        let inbox = PgInbox::with_options(database.pool(1), database.options());
        inbox.migrate().await.expect("the inbox's tables");
        inbox.pool().close().await;
        database
    }

    /// One that another process has made.
    ///
    /// # Panics
    ///
    /// When the URL is not understood.
    pub fn existing(url: &str, schema: impl Into<String>) -> Self {
        let schema = schema.into();
        let server = PgConnectOptions::from_str(url).expect("a PostgreSQL URL");
        let server = server.application_name(&schema).options([("search_path", &schema)]);
        Self { server, schema }
    }

    /// The schema's name.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The server's URL, for [`existing`](Self::existing) in another process.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.to_url_lossy().to_string()
    }

    /// The same database behind another port, such as a proxy's, or with other settings.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(PgConnectOptions) -> PgConnectOptions) -> Self {
        Self { server: change(self.server.clone()), schema: self.schema.clone() }
    }

    /// A pool of this size. Connections are opened when they are needed.
    #[must_use]
    pub fn pool(&self, size: u32) -> PgPool {
        PgPoolOptions::new()
            .max_connections(size)
            .acquire_timeout(WAIT_FOR_CONNECTION)
            .connect_lazy_with(self.server.clone())
    }

    /// Options of an inbox in this schema.
    #[must_use]
    pub fn options(&self) -> PgInboxOptions {
        PgInboxOptions::default().schema(&*self.schema).expect("a plain name")
    }

    /// An inbox on a pool of its own, of six connections.
    #[must_use]
    pub fn inbox(&self) -> PgInbox {
        PgInbox::with_options(self.pool(6), self.options())
    }

    /// How to connect from outside: told from the consumer's sessions by its name.
    #[must_use]
    pub fn outside(&self) -> PgConnectOptions {
        self.server.clone().application_name("outside")
    }

    /// A connection from outside.
    ///
    /// # Panics
    ///
    /// When there is none within the usual time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn connect(&self) -> PgConnection {
        let outside = self.outside();
        until("a connection from outside", PATIENCE, || async {
            PgConnection::connect_with(&outside).await.map_err(|error| error.to_string())
        })
        .await
    }

    /// Runs statements from outside.
    ///
    /// # Panics
    ///
    /// When one fails.
    ///
    /// # Cancel safety
    ///
    /// The statements may have run.
    pub async fn run(&self, sql: &str) {
        let mut conn = self.connect().await;
        conn.execute(AssertSqlSafe(sql.to_owned())).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// One number, seen from outside.
    ///
    /// # Panics
    ///
    /// When the query fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn number(&self, sql: &str) -> i64 {
        let mut conn = self.connect().await;
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        query.fetch_one(&mut conn).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// How many effects each message has, seen from outside.
    ///
    /// # Panics
    ///
    /// When the query fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn effects(&self) -> BTreeMap<String, i64> {
        let mut conn = self.connect().await;
        let sql = "SELECT message_id, count(*) FROM effects GROUP BY message_id";
        let rows: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(&mut conn).await.expect("effects");
        rows.into_iter().collect()
    }

    /// Waits until these messages, and no others, have one effect each and the inbox knows them.
    ///
    /// # Panics
    ///
    /// When that is not so in time, or as soon as a message has two effects.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn has_one_effect_each(&self, ids: &[String], limit: Duration) {
        let wanted: BTreeMap<String, i64> = ids.iter().map(|id| (id.clone(), 1)).collect();
        until("one effect each", limit, || async {
            let found = self.effects().await;
            let twice: Vec<_> = found.iter().filter(|(_, count)| **count != 1).collect();
            assert!(twice.is_empty(), "more than one effect: {twice:?}");
            let strange: Vec<_> = found.keys().filter(|id| !wanted.contains_key(*id)).collect();
            assert!(strange.is_empty(), "nobody sent these: {strange:?}");
            let missing: Vec<_> = wanted.keys().filter(|id| !found.contains_key(*id)).take(5).collect();
            if missing.is_empty() {
                Ok(())
            } else {
                Err(format!("{} of {} are there, not {missing:?} …", found.len(), wanted.len()))
            }
        })
        .await;
        assert_eq!(
            self.number("SELECT count(*) FROM inbox_messages").await,
            self.number("SELECT count(*) FROM effects").await
        );
    }

    /// Asserts that no attempt was spent.
    ///
    /// # Panics
    ///
    /// When one was.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn no_attempt_was_spent(&self) {
        let mut conn = self.connect().await;
        let sql = "SELECT message_id, failures, last_error FROM inbox_attempts WHERE failures > 0";
        let rows: Vec<(String, i32, Option<String>)> =
            sqlx::query_as(sql).fetch_all(&mut conn).await.expect("attempts");
        assert!(rows.is_empty(), "attempts were spent: {rows:?}");
    }

    /// Asserts that no session stays inside a transaction without doing anything for more than a second.
    ///
    /// # Panics
    ///
    /// When one does.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn nothing_is_idle_in_a_transaction(&self) {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' \
             AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '1 second'",
            self.schema
        );
        // One that has just begun is not known to stay: look until it is older than that, or gone.
        let sessions = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND state LIKE 'idle in transaction%'",
            self.schema
        );
        until("sessions out of their transactions", Duration::from_secs(3), || async {
            assert_eq!(self.number(&sql).await, 0, "sessions are idle in a transaction");
            match self.number(&sessions).await {
                0 => Ok(()),
                young => Err(format!("{young} are inside")),
            }
        })
        .await;
    }
}

/// The effect that most tests want: one row.
///
/// # Errors
///
/// The database's.
///
/// # Cancel safety
///
/// Not cancel safe: inside a transaction.
pub async fn effect(db: &mut PgConnection, id: &str, note: &str) -> Result<(), Failure> {
    sqlx::query("INSERT INTO effects (message_id, note) VALUES ($1, $2)")
        .bind(id)
        .bind(note)
        .execute(db)
        .await?;
    Ok(())
}
