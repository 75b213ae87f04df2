#[cfg(any(feature = "postgres", feature = "sqlite"))]
use aftercommit::inbox::StoreError;
use aftercommit_lab::LabError;

use crate::args::MigrateArgs;
use crate::exit;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use crate::say;

pub(crate) async fn run(args: &MigrateArgs) -> Result<u8, LabError> {
    let scheme = args.database.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "postgres" | "postgresql" => postgres(args).await?,
        "sqlite" => sqlite(args).await?,
        _ => {
            let what = format!(
                "no database has URLs with the scheme {scheme:?}; known are postgres, postgresql, sqlite"
            );
            return Err(LabError::Usage(what));
        }
    }
    Ok(exit::OK)
}

#[cfg(feature = "postgres")]
async fn postgres(args: &MigrateArgs) -> Result<(), LabError> {
    use std::str::FromStr;

    use aftercommit::inbox::Fault;
    use aftercommit::sql::sqlx::{self, AssertSqlSafe};
    use aftercommit::sql::{PgInbox, PgInboxOptions};

    let schema = args.schema.as_deref().unwrap_or("public");
    let options = PgInboxOptions::default().schema(schema);
    let options = options.map_err(|error| LabError::Usage(error.to_string()))?;
    if sqlx::postgres::PgConnectOptions::from_str(&args.database).is_err() {
        return Err(LabError::Usage("the PostgreSQL URL is not valid".to_owned()));
    }
    let failed = |error: StoreError| match (error.fault(), failed(error, &format!("the schema {schema}"))) {
        (Fault::Unavailable, LabError::Failed { what, source }) => LabError::Away { what, source },
        (_, error) => error,
    };
    let store = PgInbox::connect_with(&args.database, options).await.map_err(failed)?;
    let table = format!("\"{schema}\".inbox_schema_versions");
    let is_there = format!("SELECT to_regclass('{table}') IS NOT NULL");
    let versions = format!("SELECT max(version) FROM {table}");
    let version = async || -> Result<Option<i32>, sqlx::Error> {
        if !sqlx::query_scalar(AssertSqlSafe(&*is_there)).fetch_one(store.pool()).await? {
            return Ok(None);
        }
        sqlx::query_scalar(AssertSqlSafe(&*versions)).fetch_one(store.pool()).await
    };
    let before = version().await.map_err(asking)?;
    store.migrate().await.map_err(failed)?;
    tell(&format!("the schema {schema}"), before, version().await.map_err(asking)?);
    Ok(())
}

#[cfg(feature = "sqlite")]
async fn sqlite(args: &MigrateArgs) -> Result<(), LabError> {
    use aftercommit::sql::sqlx;
    use aftercommit::sql::{SqliteInbox, SqliteInboxOptions};

    if args.schema.is_some() {
        return Err(LabError::Usage("SQLite has no schemas: leave --schema out".to_owned()));
    }
    let path = args.database.trim_start_matches("sqlite:").trim_start_matches("//");
    if path.is_empty() {
        return Err(LabError::Usage("which file? write sqlite:FILE".to_owned()));
    }
    let failed = |error| failed(error, path);
    let store = SqliteInbox::open(path, SqliteInboxOptions::default()).await.map_err(failed)?;
    let version = async || -> Result<Option<i32>, sqlx::Error> {
        let is_there = "SELECT count(*) FROM sqlite_master WHERE name = 'inbox_schema_versions'";
        let tables: i64 = sqlx::query_scalar(is_there).fetch_one(store.pool()).await?;
        if tables == 0 {
            return Ok(None);
        }
        sqlx::query_scalar("SELECT max(version) FROM inbox_schema_versions").fetch_one(store.pool()).await
    };
    let before = version().await.map_err(asking)?;
    store.migrate().await.map_err(failed)?;
    tell(path, before, version().await.map_err(asking)?);
    Ok(())
}

/// Says what a migration did.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn tell(place: &str, before: Option<i32>, after: Option<i32>) {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before == after {
        say::out(format!("nothing to do: the inbox's tables in {place} are of version {after}"));
    } else if before == 0 {
        say::out(format!(
            "made inbox_messages, inbox_attempts and inbox_schema_versions in {place}, version {after}"
        ));
    } else {
        say::out(format!("brought the inbox's tables in {place} from version {before} to {after}"));
    }
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn failed(error: StoreError, place: &str) -> LabError {
    LabError::Failed { what: format!("making the inbox's tables in {place}"), source: Some(error.into()) }
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn asking(error: aftercommit::sql::sqlx::Error) -> LabError {
    LabError::Failed {
        what: "asking for the version of the inbox's tables".to_owned(),
        source: Some(error.into()),
    }
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: &MigrateArgs) -> Result<(), LabError> {
    Err(LabError::NotCompiled { what: "postgres".to_owned(), feature: "postgres" })
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_: &MigrateArgs) -> Result<(), LabError> {
    Err(LabError::NotCompiled { what: "sqlite".to_owned(), feature: "sqlite" })
}
