//! SQLite: each run has a file of its own, in the run's folder.

use aftercommit::sql::sqlx::{self, SqliteConnection};
use aftercommit::sql::{SqliteInbox, SqliteInboxOptions};
use aftercommit::{Consumer, Failure, Handled, Handler, Message};
use aftercommit_conformance::faults::{FaultyHandler, Script};

use super::ledger::ledger;
use crate::LabError;
use crate::order::id_of;
use crate::role::Journal;
use crate::site::{CONSUMER, Site};

pub(super) struct Sqlite {
    store: SqliteInbox,
}

pub(super) async fn open(site: &Site) -> Result<Sqlite, LabError> {
    let path = site.database.trim_start_matches("sqlite:");
    let store = SqliteInbox::open(path, SqliteInboxOptions::default()).await;
    Ok(Sqlite { store: store.map_err(LabError::doing(format!("opening the SQLite file {path}")))? })
}

impl Sqlite {
    const VERSION: &str = "SELECT sqlite_version()";

    /// The run's folder is made by whoever chose the file.
    async fn make_place(&self) -> Result<(), LabError> {
        Ok(())
    }

    async fn remove_place(&self) -> Result<(), LabError> {
        self.store.pool().close().await;
        Ok(())
    }
}

ledger!(Sqlite, SqliteInbox, SqliteConnection);
