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

pub(super) const PROVE: &str = "WITH again AS ( \
    INSERT INTO inbox_messages (consumer_name, message_id) SELECT $1, id FROM unnest($2::text[]) AS given (id) \
    WHERE current_setting('aftercommit.begun', true) = 'on' \
    ON CONFLICT (consumer_name, message_id) DO NOTHING RETURNING 1) \
    SELECT coalesce(current_setting('aftercommit.begun', true), '') = 'on', \
    (SELECT count(*) FROM again), \
    current_setting('synchronous_commit') = 'off' OR \
    current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> ''";

impl Safety {
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Self::Full => BEGIN,
            Self::None => "BEGIN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same SQL on both sides is what makes a ratio mean something: when the product's changes,
    /// this file follows.
    #[test]
    fn the_statements_are_the_products() {
        let text = include_str!("../../../aftercommit-sql/src/dialect/postgres/statements.rs");
        let product = text.replace("{messages}", "inbox_messages").replace('\\', " ");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for statement in [CLAIM, PROVE] {
            assert!(words(&product).contains(&words(statement)), "the product has another {statement}");
        }
        let settings = |text: &str| text.matches("SET LOCAL").count();
        assert_eq!(settings(BEGIN), settings(text), "the product sets something else at BEGIN");
    }
}
