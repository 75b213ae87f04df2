//! SQLite: a file for each trial.

use std::sync::Arc;

use aftercommit_conformance::inbox::{Books, Effect, Ledger};
use aftercommit_core::{BoxError, Failure};
use aftercommit_sql::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use aftercommit_sql::sqlx::{self, ConnectOptions as _};
use aftercommit_sql::{SqliteInbox, SqliteInboxOptions};
use async_trait::async_trait;

/// A new file for each trial, removed at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteBooks;

#[async_trait]
impl Books for SqliteBooks {
    type Store = SqliteInbox;

    fn product(&self) -> &'static str {
        "sqlite"
    }

    fn one_writer(&self) -> Option<&'static str> {
        Some("SQLite has one writer per file")
    }

    async fn open(&self, _trial: &str) -> Result<Arc<dyn Ledger<SqliteInbox>>, BoxError> {
        let ledger = SqliteLedger { folder: tempfile::tempdir()? };
        ledger.store().await?.migrate().await?;
        let mut db = ledger.connect().await?;
        sqlx::raw_sql("CREATE TABLE effects (consumer TEXT NOT NULL, id BLOB NOT NULL, note TEXT NOT NULL)")
            .execute(&mut db)
            .await?;
        sqlx::raw_sql("CREATE TABLE taken (one INTEGER PRIMARY KEY); INSERT INTO taken VALUES (1)")
            .execute(&mut db)
            .await?;
        Ok(Arc::new(ledger))
    }
}

struct SqliteLedger {
    folder: tempfile::TempDir,
}

impl SqliteLedger {
    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("trial.db")
    }

    async fn connect(&self) -> Result<SqliteConnection, BoxError> {
        Ok(SqliteConnectOptions::new().filename(self.file()).connect().await?)
    }
}

#[async_trait]
impl Ledger<SqliteInbox> for SqliteLedger {
    async fn store(&self) -> Result<SqliteInbox, BoxError> {
        Ok(SqliteInbox::open(self.file(), SqliteInboxOptions::default()).await?)
    }

    async fn record(&self, db: &mut SqliteConnection, effect: &Effect) -> Result<(), Failure> {
        sqlx::query("INSERT INTO effects (consumer, id, note) VALUES (?1, ?2, ?3)")
            .bind(&effect.consumer)
            .bind(&effect.id)
            .bind(&effect.note)
            .execute(db)
            .await?;
        Ok(())
    }

    /// A conflict that SQLite answers by rolling the transaction back.
    async fn stumble(&self, db: &mut SqliteConnection) -> Result<(), Failure> {
        sqlx::raw_sql("INSERT OR ROLLBACK INTO taken VALUES (1)").execute(db).await?;
        Ok(())
    }

    async fn raw(&self, db: &mut SqliteConnection, sql: &'static str) -> Result<(), Failure> {
        sqlx::raw_sql(sql).execute(db).await?;
        Ok(())
    }

    async fn effects(&self) -> Result<Vec<Effect>, BoxError> {
        let rows: Vec<(String, Vec<u8>, String)> =
            sqlx::query_as("SELECT consumer, id, note FROM effects ORDER BY rowid")
                .fetch_all(&mut self.connect().await?)
                .await?;
        Ok(rows.into_iter().map(|(consumer, id, note)| Effect { consumer, id, note }).collect())
    }

    async fn handled(&self) -> Result<Vec<(String, String)>, BoxError> {
        let all = sqlx::query_as("SELECT consumer_name, message_id FROM inbox_messages");
        Ok(all.fetch_all(&mut self.connect().await?).await?)
    }

    async fn failures(&self) -> Result<u64, BoxError> {
        let sum: i64 = sqlx::query_scalar("SELECT coalesce(sum(failures), 0) FROM inbox_attempts")
            .fetch_one(&mut self.connect().await?)
            .await?;
        Ok(u64::try_from(sum)?)
    }

    async fn strike(&self) -> Result<(), BoxError> {
        Ok(())
    }
}
