//! The SQL, with our tables' names filled in.

use std::sync::Arc;

use sqlx::AssertSqlSafe;

use super::options::PgInboxOptions;

/// Text that is ours but for names that [`crate::names`] checked.
pub(super) type Sql = AssertSqlSafe<Arc<str>>;

pub(super) struct Statements {
    begin: Arc<str>,
    begin_checked: Arc<str>,
    begin_counting: Arc<str>,
    claim: Arc<str>,
    prove: Arc<str>,
    unclaim: Arc<str>,
    record_failure: Arc<str>,
    record_start: Arc<str>,
    forget: Arc<str>,
}

/// Rows go in in the order of the array, which is sorted: two claims never wait for each other in a
/// circle. Only a duplicate of this very key is passed over.
const CLAIM: &str = "INSERT INTO {messages} (consumer_name, message_id) \
    SELECT $1, id FROM unnest($2::text[]) AS given (id) \
    ON CONFLICT (consumer_name, message_id) DO NOTHING RETURNING message_id";

/// Claims once more: while the claims are there, nothing can be inserted and nothing is written.
///
/// `aftercommit.begun` was set by our own BEGIN and ends with its transaction: where it is gone,
/// another transaction runs, or none, and nothing may be inserted. A SELECT would do as well but for
/// its plans: at each call it is planned anew, or it keeps a plan from when the table was small and
/// reads all of it; the check for a conflict always goes by the key.
const PROVE: &str = "WITH again AS ( \
    INSERT INTO {messages} (consumer_name, message_id) SELECT $1, id FROM unnest($2::text[]) AS given (id) \
    WHERE current_setting('aftercommit.begun', true) = 'on' \
    ON CONFLICT (consumer_name, message_id) DO NOTHING RETURNING 1) \
    SELECT coalesce(current_setting('aftercommit.begun', true), '') = 'on', \
    (SELECT count(*) FROM again), \
    current_setting('synchronous_commit') = 'off' OR \
    current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> ''";

/// Only what this transaction claimed: what was handled earlier must not be forgotten.
const UNCLAIM: &str = "DELETE FROM {messages} WHERE consumer_name = $1 AND message_id = ANY ($2::text[]) \
    AND xmin = pg_current_xact_id_if_assigned()::xid";

const RECORD_FAILURE: &str = "INSERT INTO {attempts} AS a \
    (consumer_name, message_id, failures, first_failed_at, last_failed_at, last_error) \
    VALUES ($1, $2, 1, now(), now(), $3) \
    ON CONFLICT (consumer_name, message_id) DO UPDATE SET \
    failures = least(a.failures, 2147483646) + 1, \
    first_failed_at = coalesce(a.first_failed_at, excluded.first_failed_at), \
    last_failed_at = excluded.last_failed_at, last_error = excluded.last_error \
    RETURNING failures, first_failed_at, last_failed_at";

const RECORD_START: &str = "INSERT INTO {attempts} AS a (consumer_name, message_id, starts) \
    SELECT $1, $2, 1 WHERE NOT EXISTS \
    (SELECT FROM {messages} WHERE consumer_name = $1 AND message_id = $2) \
    ON CONFLICT (consumer_name, message_id) DO UPDATE SET starts = least(a.starts, 2147483646) + 1 \
    RETURNING starts";

const FORGET: &str = "DELETE FROM {attempts} WHERE consumer_name = $1 AND message_id = $2";

impl Statements {
    pub(super) fn new(options: &PgInboxOptions) -> Self {
        let tables = options.tables();
        let sql = |text: &str| Arc::from(tables.fill(text));
        let limits = limits(options);
        Self {
            begin: format!("BEGIN; {limits}").into(),
            begin_checked: format!("BEGIN; {limits}; SET LOCAL client_connection_check_interval = 1000")
                .into(),
            // Counting must not fail with 40001 because the application's default is stricter.
            begin_counting: format!("BEGIN ISOLATION LEVEL READ COMMITTED; {limits}").into(),
            claim: sql(CLAIM),
            prove: sql(PROVE),
            unclaim: sql(UNCLAIM),
            record_failure: sql(RECORD_FAILURE),
            record_start: sql(RECORD_START),
            forget: sql(FORGET),
        }
    }

    /// One round trip: several statements in one simple query. `watch` also lets the server look
    /// after the client while a statement runs, so that a closed connection frees its claims within
    /// a second instead of at the end of the statement (PostgreSQL 14 and later).
    pub(super) fn begin(&self, watch: bool) -> Sql {
        safe(if watch { &self.begin_checked } else { &self.begin })
    }

    pub(super) fn begin_counting(&self) -> Sql {
        safe(&self.begin_counting)
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

fn limits(options: &PgInboxOptions) -> String {
    format!(
        "SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}; SET LOCAL aftercommit.begun = 'on'",
        options.statement_timeout.as_millis(),
        options.lock_timeout.as_millis(),
        options.idle_timeout.as_millis()
    )
}
