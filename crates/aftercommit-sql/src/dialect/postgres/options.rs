use std::time::Duration;

use aftercommit_core::ConfigError;

use crate::names::{Name, Tables};

/// How [`PgInbox`](crate::PgInbox) behaves. Every limit is set inside each transaction
/// (`SET LOCAL`), so that connections go back to your pool as they came.
#[derive(Clone, Debug)]
pub struct PgInboxOptions {
    schema: Name,
    prefix: Name,
    pub(super) statement_timeout: Duration,
    pub(super) lock_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) allow_unsafe_commit: bool,
    pub(super) named_statements: bool,
}

impl Default for PgInboxOptions {
    /// Schema `public`, no prefix; a statement may take 30 seconds, wait 10 seconds for a lock, and
    /// a transaction may do nothing for 60 seconds.
    fn default() -> Self {
        Self {
            schema: Name::schema("public").unwrap_or_default(),
            prefix: Name::default(),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            allow_unsafe_commit: false,
            named_statements: true,
        }
    }
}

impl PgInboxOptions {
    /// The schema of the tables. Always used: a handler's `search_path` does not matter.
    ///
    /// # Errors
    /// [`ConfigError`] when it is not a plain name.
    pub fn schema(mut self, schema: impl Into<String>) -> Result<Self, ConfigError> {
        self.schema = Name::schema(schema)?;
        Ok(self)
    }

    /// What the tables' names start with.
    ///
    /// # Errors
    /// [`ConfigError`] when it is not a plain name.
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Result<Self, ConfigError> {
        self.prefix = Name::prefix(prefix)?;
        Ok(self)
    }

    /// How long one statement may take, handlers' statements included.
    ///
    /// # Errors
    /// [`ConfigError`] below one millisecond and above 24 days.
    pub fn statement_timeout(mut self, timeout: Duration) -> Result<Self, ConfigError> {
        self.statement_timeout = checked("statement_timeout", timeout)?;
        Ok(self)
    }

    /// How long one statement may wait for a lock, a claim of somebody else included.
    ///
    /// # Errors
    /// [`ConfigError`] below one millisecond and above 24 days.
    pub fn lock_timeout(mut self, timeout: Duration) -> Result<Self, ConfigError> {
        self.lock_timeout = checked("lock_timeout", timeout)?;
        Ok(self)
    }

    /// How long a transaction may wait for its next statement before the server ends it. It frees
    /// the claims of a consumer that is frozen. Must be longer than handlers spend on anything but
    /// SQL.
    ///
    /// # Errors
    /// [`ConfigError`] below one millisecond and above 24 days.
    pub fn idle_in_transaction_timeout(mut self, timeout: Duration) -> Result<Self, ConfigError> {
        self.idle_timeout = checked("idle_in_transaction_session_timeout", timeout)?;
        Ok(self)
    }

    /// Runs on servers whose COMMIT can vanish: **messages can be lost** then, because they are
    /// confirmed to the broker after a commit that a crash undoes. What would have been refused is
    /// logged as a warning. For tests, or where the file system itself makes a setting safe.
    #[must_use]
    pub const fn allow_unsafe_commit(mut self, allow: bool) -> Self {
        self.allow_unsafe_commit = allow;
        self
    }

    /// Whether the store prepares its statements once per connection (the default). Behind a pooler
    /// in transaction mode that does not follow named statements (PgBouncer before 1.21, or with
    /// `max_prepared_statements = 0`) this must be `false`; each statement then costs one more round
    /// trip. Handlers must say `.persistent(false)` there as well.
    #[must_use]
    pub const fn named_statements(mut self, named: bool) -> Self {
        self.named_statements = named;
        self
    }

    pub(super) fn schema_name(&self) -> &str {
        self.schema.as_str()
    }

    pub(super) fn tables(&self) -> Tables {
        Tables::new(Some(&self.schema), &self.prefix)
    }

    /// What the server cannot end (a network that swallows everything) is ended here, later than the
    /// server would have.
    pub(super) fn answer_timeout(&self) -> Duration {
        self.statement_timeout.saturating_add(Duration::from_secs(5))
    }
}

fn checked(what: &'static str, timeout: Duration) -> Result<Duration, ConfigError> {
    let most = i32::MAX as usize;
    match usize::try_from(timeout.as_millis()).unwrap_or(usize::MAX) {
        0 => Err(ConfigError::Zero { what }),
        found if found > most => Err(ConfigError::TooLarge { what, found, most }),
        _ => Ok(timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_at_all_is_refused() {
        let options = PgInboxOptions::default;
        options().statement_timeout(Duration::from_micros(999)).unwrap_err();
        options().lock_timeout(Duration::ZERO).unwrap_err();
        options().idle_in_transaction_timeout(Duration::MAX).unwrap_err();
        assert_eq!(options().schema_name(), "public");
    }
}
