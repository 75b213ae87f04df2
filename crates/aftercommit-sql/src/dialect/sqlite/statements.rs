//! The SQL, with our tables' names filled in.

use std::sync::Arc;

use sqlx::AssertSqlSafe;

use super::options::SqliteInboxOptions;

/// Text that is ours but for names that [`crate::names`] checked.
pub(super) type Sql = AssertSqlSafe<Arc<str>>;

pub(super) struct Statements {
    claim: Arc<str>,
    prove: Arc<str>,
    unclaim: Arc<str>,
    record_failure: Arc<str>,
    record_start: Arc<str>,
    forget: Arc<str>,
}

/// Write intent at once: a transaction that reads first and writes later is refused without waiting.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

/// Only a duplicate of this very key is passed over. `WHERE true` keeps SQLite from reading
/// `ON CONFLICT` as the condition of a join.
const CLAIM: &str = "INSERT INTO {messages} (consumer_name, message_id) \
    SELECT ?1, value FROM json_each(?2) WHERE true \
    ON CONFLICT (consumer_name, message_id) DO NOTHING RETURNING message_id";

/// That the transaction is still the one that made the claims is known from the hooks.
const PROVE: &str = "SELECT count(*) FROM json_each(?2) AS given CROSS JOIN {messages} AS m \
    ON m.consumer_name = ?1 AND m.message_id = given.value";

const UNCLAIM: &str =
    "DELETE FROM {messages} WHERE consumer_name = ?1 AND message_id IN (SELECT value FROM json_each(?2))";

const RECORD_FAILURE: &str = "INSERT INTO {attempts} AS a \
    (consumer_name, message_id, failures, first_failed_at, last_failed_at, last_error) \
    VALUES (?1, ?2, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?3) \
    ON CONFLICT (consumer_name, message_id) DO UPDATE SET \
    failures = min(a.failures, 2147483646) + 1, \
    first_failed_at = coalesce(a.first_failed_at, excluded.first_failed_at), \
    last_failed_at = excluded.last_failed_at, last_error = excluded.last_error \
    RETURNING failures, first_failed_at, last_failed_at";

const RECORD_START: &str = "INSERT INTO {attempts} AS a (consumer_name, message_id, starts) \
    SELECT ?1, ?2, 1 WHERE NOT EXISTS \
    (SELECT 1 FROM {messages} WHERE consumer_name = ?1 AND message_id = ?2) \
    ON CONFLICT (consumer_name, message_id) DO UPDATE SET starts = min(a.starts, 2147483646) + 1 \
    RETURNING starts";

const FORGET: &str = "DELETE FROM {attempts} WHERE consumer_name = ?1 AND message_id = ?2";

impl Statements {
    pub(super) fn new(options: &SqliteInboxOptions) -> Self {
        let tables = options.tables();
        let sql = |text: &str| Arc::from(tables.fill(text));
        Self {
            claim: sql(CLAIM),
            prove: sql(PROVE),
            unclaim: sql(UNCLAIM),
            record_failure: sql(RECORD_FAILURE),
            record_start: sql(RECORD_START),
            forget: sql(FORGET),
        }
    }

    pub(super) fn claim(&self) -> Sql {
        safe(&self.claim)
    }

    pub(super) fn prove(&self) -> Sql {
        safe(&self.prove)
    }

    pub(super) fn unclaim(&self) -> Sql {
        safe(&self.unclaim)
    }

    pub(super) fn record_failure(&self) -> Sql {
        safe(&self.record_failure)
    }

    pub(super) fn record_start(&self) -> Sql {
        safe(&self.record_start)
    }

    pub(super) fn forget(&self) -> Sql {
        safe(&self.forget)
    }
}

fn safe(sql: &Arc<str>) -> Sql {
    AssertSqlSafe(Arc::clone(sql))
}
