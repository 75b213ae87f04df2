//! PostgreSQL: each run has a schema of its own, in which its sessions find their tables.

use std::str::FromStr;
use std::time::Duration;

use aftercommit::sql::sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use aftercommit::sql::sqlx::{self, AssertSqlSafe, Connection};
use aftercommit::sql::{PgInbox, PgInboxOptions};
use aftercommit::{Consumer, Failure, Handled, Handler, Message};
use aftercommit_conformance::faults::{FaultyHandler, Script};
use tokio::time::timeout;

use super::ledger::ledger;
use crate::LabError;
use crate::order::id_of;
use crate::role::Journal;
use crate::site::{CONSUMER, Site};

/// How long a connection may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

pub(super) struct Postgres {
    store: PgInbox,
    schema: String,
    place: String,
}

pub(super) async fn open(site: &Site) -> Result<Postgres, LabError> {
    let schema = site.schema();
    let wrong = |_| LabError::Usage("the PostgreSQL URL is not valid".to_owned());
    let server = PgConnectOptions::from_str(&site.database).map_err(wrong)?;
    let server = server.application_name("aftercommit-lab").options([("search_path", &schema)]);
    let place = format!("PostgreSQL at {}:{}", server.get_host(), server.get_port());
    // A pool would try again and again, and in the end say only that it timed out.
    let silent = |_| LabError::failed(format!("{place} does not answer within {CONNECT_WITHIN:?}"));
    let first = timeout(CONNECT_WITHIN, PgConnection::connect_with(&server)).await.map_err(silent)?;
    let first = first.map_err(|error| match error {
        sqlx::Error::Database(said) => {
            LabError::failed(format!("{place} refused access: {}", said.message()))
        }
        error => LabError::away(format!("{place} cannot be reached"))(error),
    })?;
    first.close().await.map_err(LabError::doing(format!("leaving {place}")))?;
    let pool = PgPoolOptions::new().max_connections(5).acquire_timeout(CONNECT_WITHIN);
    let options = PgInboxOptions::default().schema(&*schema);
    let options = options.map_err(LabError::doing("naming the schema"))?;
    Ok(Postgres { store: PgInbox::with_options(pool.connect_lazy_with(server), options), schema, place })
}

impl Postgres {
    const VERSION: &str = "SHOW server_version";

    async fn make_place(&self) -> Result<(), LabError> {
        let sql = format!("CREATE SCHEMA {}", self.schema);
        let made = sqlx::query(AssertSqlSafe(sql)).execute(self.store.pool()).await;
        let what = format!("making the schema {} on {}", self.schema, self.place);
        made.map(drop).map_err(LabError::doing(what))
    }

    async fn remove_place(&self) -> Result<(), LabError> {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        let removed = sqlx::query(AssertSqlSafe(sql)).execute(self.store.pool()).await;
        self.store.pool().close().await;
        let what = format!("removing the schema {} from {}", self.schema, self.place);
        removed.map(drop).map_err(LabError::doing(what))
    }
}

ledger!(Postgres, PgInbox, PgConnection);
