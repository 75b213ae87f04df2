/// The statements around the business write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// As the product: limits at BEGIN, and a last statement that proves the transaction before
    /// COMMIT.
    Full,
    /// Neither: BEGIN, claim, business write, COMMIT. It confirms messages whose transaction a
    /// swallowed error has rolled back; it is here to show what the difference costs.
    None,
}

pub(super) const TABLE: &str = "CREATE TABLE inbox_messages (\
    consumer_name text COLLATE \"C\" NOT NULL CHECK (octet_length(consumer_name) BETWEEN 1 AND 128), \
    message_id text COLLATE \"C\" NOT NULL CHECK (octet_length(message_id) BETWEEN 1 AND 255), \
    processed_at timestamptz NOT NULL DEFAULT now(), \
    PRIMARY KEY (consumer_name, message_id))";

const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 30000; SET LOCAL lock_timeout = 10000; \
    SET LOCAL idle_in_transaction_session_timeout = 60000; SET LOCAL aftercommit.begun = 'on'; \
    SET LOCAL client_connection_check_interval = 1000";

/// One statement for any number of ids.
pub(super) const CLAIM: &str = "INSERT INTO inbox_messages (consumer_name, message_id) \
    SELECT $1, id FROM unnest($2::text[]) AS given (id) \
    ON CONFLICT (consumer_name, message_id) DO NOTHING RETURNING message_id";

pub(super) const EFFECT: &str = "INSERT INTO effects (message_id, body) VALUES ($1, $2)";

pub(super) const EFFECTS: &str =
    "INSERT INTO effects (message_id, body) SELECT * FROM unnest($1::text[], $2::bytea[])";

pub(super) const PROVE: &str = "SELECT coalesce(current_setting('aftercommit.begun', true), '') = 'on', \
    (SELECT count((SELECT 1 FROM inbox_messages AS m WHERE m.consumer_name = $1 AND m.message_id = given.id \
    AND m.xmin = pg_current_xact_id_if_assigned()::xid)) FROM unnest($2::text[]) AS given (id)), \
    current_setting('synchronous_commit')";

impl Safety {
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Self::Full => BEGIN,
            Self::None => "BEGIN",
        }
    }
}
