use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_inbox::{Fault, InboxStore, StoreError};
use async_trait::async_trait;
use sqlx::Connection;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres};

use super::options::PgInboxOptions;
use super::session::{PgSession, within};
use super::statements::Statements;
use super::{check, fault, migrate, pooler};
use crate::fault::along;

/// An inbox in PostgreSQL. Cheap to clone.
#[derive(Clone)]
pub struct PgInbox(Arc<Shared>);

pub(super) struct Shared {
    pub(super) pool: PgPool,
    pub(super) options: PgInboxOptions,
    pub(super) sql: Statements,
}

impl PgInbox {
    /// An inbox on your own pool, which needs at least as many connections as lanes and two more.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self::with_options(pool, PgInboxOptions::default())
    }

    /// An inbox on your own pool.
    #[must_use]
    pub fn with_options(pool: PgPool, options: PgInboxOptions) -> Self {
        let sql = Statements::new(&options);
        Self(Arc::new(Shared { pool, options, sql }))
    }

    /// An inbox on a pool of its own, of ten connections.
    ///
    /// # Errors
    /// [`Fault::Refused`] when the URL is not understood, [`Fault::Unavailable`] when the server
    /// cannot be reached. Neither shows the URL.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future leaves no connection.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PgInboxOptions::default()).await
    }

    /// An inbox on a pool of its own, of ten connections.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancel safety
    /// As [`connect`](Self::connect).
    pub async fn connect_with(url: &str, options: PgInboxOptions) -> Result<Self, StoreError> {
        let mut server = PgConnectOptions::from_str(url)
            .map_err(|_| StoreError::new(Fault::Refused, "the PostgreSQL URL is not valid"))?;
        if server.get_application_name().is_none() {
            server = server.application_name("aftercommit");
        }
        // A pool would try again and again, and in the end say only that it timed out.
        drop(connect(&server).await?);
        let pool = PgPoolOptions::new().acquire_timeout(CONNECT_WITHIN).connect_lazy_with(server);
        Ok(Self::with_options(pool, options))
    }

    /// Makes or updates the inbox's tables. Any number of instances may call it at once; a call that
    /// finds nothing to do changes nothing. The application's own migrations are not touched.
    ///
    /// # Errors
    /// [`Fault::Schema`] when the tables are newer than this program, [`Fault::Refused`] when the
    /// role may not create them, [`Fault::Unavailable`] and [`Fault::Conflict`] when it may work
    /// later. Nothing is left half done.
    ///
    /// # Cancel safety
    /// A dropped future has done all or nothing.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        // Taken out of the pool, so that neither an error nor a dropped future gives it back inside a
        // transaction.
        let mut conn = self.acquire().await?.detach();
        migrate::run(&mut conn, &self.0.options).await
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    async fn check_pooler(&self, mut first: PgConnection) -> Result<(), StoreError> {
        if !self.0.options.named_statements || self.0.pool.options().get_max_connections() < 2 {
            return Ok(());
        }
        // Where the application has all others, nothing can be found out, and nothing is refused.
        let Ok(second) = self.0.pool.acquire().await else {
            return Ok(());
        };
        pooler::follows_statements(&mut first, &mut second.detach()).await
    }

    async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        let source = match self.0.pool.acquire().await {
            Ok(conn) => return Ok(conn),
            Err(source) => source,
        };
        // It says no more than that whatever the reason is, so the server is asked for one.
        if matches!(source, sqlx::Error::PoolTimedOut) {
            drop(connect(&self.0.pool.connect_options()).await?);
            let what = "all connections of the pool are taken: it needs as many as lanes and two more";
            return Err(StoreError::new(Fault::Unavailable, what).with_source(source));
        }
        Err(StoreError::new(Fault::Unavailable, "no connection to PostgreSQL").with_source(source))
    }
}

/// How long one connection may take to open, and a pool to give one.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A connection, or what the server or the way to it says.
async fn connect(server: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    within(CONNECT_WITHIN, PgConnection::connect_with(server)).await.map_err(|source| {
        let place = format!("PostgreSQL at {}:{}", server.get_host(), server.get_port());
        let what = match &source {
            sqlx::Error::Database(_) => "takes no connection from us",
            _ => "cannot be reached",
        };
        StoreError::new(Fault::Unavailable, format!("{place} {what}")).with_source(source)
    })
}

#[async_trait]
impl InboxStore for PgInbox {
    type Connection = PgConnection;
    type Session = PgSession;

    fn product(&self) -> &'static str {
        "postgres"
    }

    fn max_sessions(&self) -> usize {
        let connections = usize::try_from(self.0.pool.options().get_max_connections()).unwrap_or(usize::MAX);
        connections.saturating_sub(2).max(1)
    }

    async fn check(&self) -> Result<(), StoreError> {
        // Taken out of the pool, so that neither an error nor a dropped future gives it back in the
        // middle of something.
        let mut conn = self.acquire().await?.detach();
        let checking = check::run(&mut conn, &self.0.options);
        tokio::time::timeout(self.0.options.answer_timeout(), checking).await.unwrap_or_else(|_| {
            Err(StoreError::new(Fault::Unavailable, "checking the settings: PostgreSQL does not answer"))
        })?;
        self.check_pooler(conn).await
    }

    async fn open(&self) -> Result<PgSession, StoreError> {
        // A connection that the application left inside a transaction would make our BEGIN a mere
        // warning: its writes would be committed with ours, or ours thrown away with its.
        const TRIES: usize = 4;
        for _ in 0..TRIES {
            let mut conn = self.acquire().await?;
            let asking = check::is_in_transaction(&mut conn);
            let source = match within(self.0.options.answer_timeout(), asking).await {
                Ok(false) => return Ok(PgSession::new(conn, Arc::clone(&self.0))),
                Ok(true) => None,
                Err(source) => Some(source),
            };
            drop(conn.detach());
            if let Some(source) = source {
                return Err(fault::error(Fault::Unavailable, "taking a connection", source));
            }
            tracing::warn!("closed a pooled connection that was left inside a transaction");
        }
        let what = "the pool's connections were left inside transactions";
        Err(StoreError::new(Fault::Unavailable, what))
    }

    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Fault> {
        along(error, fault::of_handler)
    }
}

impl std::fmt::Debug for PgInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the pool: its connect options hold the password.
        f.debug_struct("PgInbox").field("options", &self.0.options).finish_non_exhaustive()
    }
}
