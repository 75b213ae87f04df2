use crate::{BoxError, Rows, Warehouse};

#[cfg(not(any(feature = "postgres", feature = "sqlite")))]
compile_error!("the examples need a database: add the feature \"sqlite\" or \"postgres\"");

/// An inbox in the database that a URL names. [`on_database`](crate::on_database) gets at the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Database {
    /// PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(aftercommit::sql::PgInbox),
    /// An SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(aftercommit::sql::SqliteInbox),
}

/// Runs an expression on the store of a [`Database`], whichever it is: `on_database!(database, store => …)`.
#[macro_export]
macro_rules! on_database {
    ($database:expr, $store:ident => $body:expr) => {
        match $database {
            #[cfg(feature = "postgres")]
            $crate::Database::Postgres($store) => $body,
            #[cfg(feature = "sqlite")]
            $crate::Database::Sqlite($store) => $body,
            #[allow(unreachable_patterns, reason = "there are as many as there are features")]
            _ => unreachable!("no other database is in this build"),
        }
    };
}

impl Database {
    /// Opens the database and makes the inbox's tables. Without a URL: a new SQLite file in the folder for
    /// temporary files.
    ///
    /// # Errors
    /// When it cannot be reached, or is not in this build.
    ///
    /// # Cancel safety
    /// A dropped future leaves no connection; tables may have been made.
    pub async fn open(url: Option<&str>) -> Result<Self, BoxError> {
        let scheme = url.map_or("sqlite", |url| url.split(':').next().unwrap_or_default());
        let database = match scheme {
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                Self::Postgres(aftercommit::sql::PgInbox::connect(url.unwrap_or_default()).await?)
            }
            #[cfg(feature = "sqlite")]
            "sqlite" => Self::Sqlite(sqlite(url).await?),
            _ => {
                return Err(
                    "this build has no such database: see the features of aftercommit-examples".into()
                );
            }
        };
        on_database!(&database, store => store.migrate().await)?;
        Ok(database)
    }

    /// See [`Warehouse::open`].
    ///
    /// # Errors
    /// The database's.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stock(&self, stock: usize) -> Result<(), BoxError> {
        Ok(on_database!(self, store => store.pool().acquire().await?.open(stock).await)?)
    }

    /// See [`Warehouse::count`].
    ///
    /// # Errors
    /// The database's.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn count(&self, run: &str) -> Result<Rows, BoxError> {
        Ok(on_database!(self, store => store.pool().acquire().await?.count(run).await)?)
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(url: Option<&str>) -> Result<aftercommit::sql::SqliteInbox, BoxError> {
    let path = match url {
        Some(url) => url.trim_start_matches("sqlite:").trim_start_matches("//").into(),
        // Kept, so that it can be looked at.
        None => tempfile::Builder::new().prefix("inventory-").tempdir()?.keep().join("inventory.db"),
    };
    eprintln!("database: {}", path.display());
    Ok(aftercommit::sql::SqliteInbox::open(path, aftercommit::sql::SqliteInboxOptions::default()).await?)
}
