//! The servers, and whether they are set up as a promise needs them.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Row};

use crate::error::{Error, Result};

/// Where the servers are.
#[derive(Clone)]
pub struct Place {
    pub(crate) postgres: PgConnectOptions,
    pub(crate) amqp: String,
}

/// What was found there, for the report.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Settings {
    pub(crate) postgres: String,
    pub(crate) fsync: String,
    pub(crate) synchronous_commit: String,
    pub(crate) shared_buffers: String,
    pub(crate) cpus: usize,
}

impl Place {
    /// Reads `AFTERCOMMIT_POSTGRES_URL` and `AFTERCOMMIT_RABBITMQ_URL`.
    ///
    /// # Errors
    /// When one is not set or not understood.
    pub fn from_env() -> Result<Self> {
        let postgres = PgConnectOptions::from_str(&variable("AFTERCOMMIT_POSTGRES_URL")?)
            .map_err(|_| Error::new("AFTERCOMMIT_POSTGRES_URL is not a PostgreSQL URL"))?;
        Ok(Self { postgres, amqp: variable("AFTERCOMMIT_RABBITMQ_URL")? })
    }

    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        let place = format!("PostgreSQL at {}:{}", self.postgres.get_host(), self.postgres.get_port());
        PgConnection::connect_with(&self.postgres).await.map_err(|error| {
            Error::new(format!("{place}: {error}; start it with `cargo xtask services up postgres`"))
        })
    }

    /// Reads the settings and refuses those under which a commit costs less than it should.
    pub(crate) async fn settings(&self) -> Result<Settings> {
        let mut conn = self.connect().await?;
        let row = sqlx::query(
            "SELECT current_setting('server_version'), current_setting('fsync'), \
             current_setting('synchronous_commit'), current_setting('shared_buffers')",
        )
        .fetch_one(&mut conn)
        .await?;
        let settings = Settings {
            postgres: row.try_get(0)?,
            fsync: row.try_get(1)?,
            synchronous_commit: row.try_get(2)?,
            shared_buffers: row.try_get(3)?,
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
        };
        for (name, value) in
            [("fsync", &settings.fsync), ("synchronous_commit", &settings.synchronous_commit)]
        {
            if value != "on" {
                return Err(Error::new(format!("{name} = {value}: figures need {name} = on")));
            }
        }
        Ok(settings)
    }
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| {
        Error::new(format!("{name} is not set: run `cargo xtask bench`, which starts the servers"))
    })
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URLs: they hold passwords.
        f.debug_struct("Place").finish_non_exhaustive()
    }
}
