//! Settings that let a COMMIT vanish, and tables that are not ours.

use aftercommit_inbox::{Fault, StoreError};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::options::SqliteInboxOptions;
use super::writer::Turns;
use super::{fault, migrate, store};

/// `PRAGMA synchronous`.
const FULL: i64 = 2;
const EXTRA: i64 = 3;

pub(super) async fn run(
    conn: &mut SqliteConnection,
    turns: &Turns,
    options: &SqliteInboxOptions,
) -> Result<(), StoreError> {
    let failed = |source| fault::error(fault::of_statement(&source), "checking the settings", source);
    let vanishing = vanishing(conn).await.map_err(failed)?;
    migrate::check(conn, options).await?;
    can_write(conn, turns, options).await?;
    let Some(finding) = vanishing else {
        return Ok(());
    };
    let what = format!("a COMMIT can vanish: {finding}");
    if options.allow_unsafe_commit {
        tracing::warn!("{what}");
        return Ok(());
    }
    Err(StoreError::new(Fault::Unsafe, what))
}

async fn vanishing(conn: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    if store::file(conn).await?.is_none() {
        return Ok(Some("the database is in memory; use a file".to_owned()));
    }
    let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *conn).await?;
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(conn).await?;
    Ok(judge(&journal, synchronous))
}

/// `EXTRA` is needed with `DELETE`: only then is the folder synced after the journal was removed,
/// and a journal that is back after a power cut rolls the commit back.
fn judge(journal: &str, synchronous: i64) -> Option<String> {
    const MEND: &str = "use journal_mode = WAL with synchronous = FULL";
    let needed = match journal {
        "wal" | "truncate" | "persist" => FULL,
        "delete" => EXTRA,
        other => return Some(format!("journal_mode = {other}; {MEND}")),
    };
    (synchronous < needed).then(|| {
        let level = ["OFF", "NORMAL", "FULL", "EXTRA"];
        let level = usize::try_from(synchronous).ok().and_then(|index| level.get(index)).unwrap_or(&"?");
        format!("synchronous = {level} with journal_mode = {journal}: a power cut undoes commits; {MEND}")
    })
}

/// A file without the right to write is found at start, not at the first message.
///
/// `BEGIN IMMEDIATE` alone is taken for `BEGIN` there; a statement that would write is refused, even
/// if it has nothing to write.
async fn can_write(
    conn: &mut SqliteConnection,
    turns: &Turns,
    options: &SqliteInboxOptions,
) -> Result<(), StoreError> {
    let sql = options.tables().fill("DELETE FROM {attempts} WHERE false");
    let _turn = turns.lock().await;
    let tried = sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await;
    tried.map(drop).or_else(|source| match fault::of_statement(&source) {
        // Somebody is writing, so it can be written.
        Fault::Conflict => Ok(()),
        fault => Err(fault::error(fault, "trying to write", source)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_journals_that_are_synced_pass() {
        let passes = |journal, synchronous| judge(journal, synchronous).is_none();
        for journal in ["wal", "truncate", "persist"] {
            assert_eq!(
                [0, 1, 2, 3].map(|level| passes(journal, level)),
                [false, false, true, true],
                "{journal}"
            );
        }
        assert_eq!([1, 2, 3].map(|level| passes("delete", level)), [false, false, true]);
        assert!(!passes("memory", 3) && !passes("off", 3));
        assert!(judge("wal", 1).unwrap().contains("synchronous = NORMAL"));
    }
}
