//! Which migrations are missing. How they are run is each database's own affair.

use aftercommit_inbox::{Fault, StoreError};

/// One step of our schema. Steps are never changed once released, only followed by others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// From 1, without gaps.
    pub(crate) version: i32,
    pub(crate) name: &'static str,
    /// With `{messages}`, `{attempts}` and `{versions}` for the tables.
    pub(crate) sql: &'static str,
}

/// The migrations that are still to run on a database at version `found` (0: none has run).
pub(crate) fn missing(all: &'static [Migration], found: i32) -> Result<&'static [Migration], StoreError> {
    let known = latest(all);
    if found > known {
        return Err(newer(found, known));
    }
    Ok(all.get(usize::try_from(found).unwrap_or_default()..).unwrap_or_default())
}

/// Whether a database at version `found` can be used.
pub(crate) fn current(all: &'static [Migration], found: i32) -> Result<(), StoreError> {
    let known = latest(all);
    if found > known {
        return Err(newer(found, known));
    }
    if found < known {
        let what =
            format!("the inbox's tables are of version {found}, this program needs {known}: run migrate()");
        return Err(StoreError::new(Fault::Schema, what));
    }
    Ok(())
}

pub(crate) fn absent(table: &str) -> StoreError {
    let what =
        format!("there is no table {table}: run migrate(), or set the schema and prefix that were migrated");
    StoreError::new(Fault::Schema, what)
}

fn newer(found: i32, known: i32) -> StoreError {
    let what =
        format!("the inbox's tables are of version {found}, this program knows {known}: run a newer program");
    StoreError::new(Fault::Schema, what)
}

fn latest(all: &'static [Migration]) -> i32 {
    all.last().map_or(0, |last| last.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Migration] =
        &[Migration { version: 1, name: "a", sql: "" }, Migration { version: 2, name: "b", sql: "" }];

    #[test]
    fn what_is_missing_runs_in_order() {
        let versions = |found| -> Vec<_> { missing(TWO, found).unwrap().iter().map(|m| m.version).collect() };
        assert_eq!(versions(0), [1, 2]);
        assert_eq!(versions(1), [2]);
        assert_eq!(versions(2), [0; 0]);
    }

    #[test]
    fn a_newer_schema_is_refused() {
        assert_eq!(missing(TWO, 3).unwrap_err().fault(), Fault::Schema);
        assert_eq!(current(TWO, 3).unwrap_err().fault(), Fault::Schema);
        assert_eq!(current(TWO, 1).unwrap_err().fault(), Fault::Schema);
        current(TWO, 2).unwrap();
    }
}
