//! What a database must do for the consumer core.

use std::error::Error;

use aftercommit_core::{BoxError, ConsumerName, MessageId};
use async_trait::async_trait;
use time::OffsetDateTime;

/// A database that remembers what was handled, in the same transaction as the handler's writes.
///
/// # What every implementation promises
/// - **Keys byte by byte.** `A` and `a`, `é` and `e` are different, whatever the database's default
///   collation is.
/// - **Durable.** A COMMIT that was answered survives a crash of the database, or
///   [`check`](Self::check) refuses to start and names the setting.
/// - **By code.** Errors are classified by SQLSTATE or vendor code, never by text.
/// - **Clean returns.** A connection goes back to a pool only outside a transaction and with the
///   session settings it came with; in doubt it is closed.
/// - **The database's clock.** Every time stored or compared is the database's.
#[async_trait]
pub trait InboxStore: Send + Sync + 'static {
    /// The driver's own connection, as handlers see it: already inside the transaction.
    type Connection: Send;
    /// One connection with the bookkeeping around it.
    type Session: Session<Connection = Self::Connection> + 'static;

    /// The database's name in logs, metrics and docs.
    fn product(&self) -> &'static str;

    /// How many sessions the consumer core may hold for good: at most the pool's size less two, so
    /// that bookkeeping and the application itself always find a connection; one where the database
    /// has one writer.
    fn max_sessions(&self) -> usize;

    /// Looks at schema and settings before anything is consumed.
    ///
    /// # Errors
    /// [`Fault::Unsafe`] when a COMMIT could vanish, [`Fault::Schema`] when the tables are missing
    /// or of another version, each naming what to do; [`Fault::Unavailable`] when the database
    /// cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is changed.
    async fn check(&self) -> Result<(), StoreError>;

    /// Takes a connection, waiting for one as long as the pool's own limit allows.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when there is none.
    ///
    /// # Cancel safety
    /// Cancel safe: a connection that was taken is returned or closed.
    async fn open(&self) -> Result<Self::Session, StoreError>;

    /// What a handler's error means, if the database's driver has something to say about it:
    /// [`Fault::Conflict`] or [`Fault::Unavailable`]; `None` for everything that is the handler's
    /// own affair. Implementations walk the chain of sources.
    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Fault>;
}

/// One connection, used by one lane.
///
/// # Order of calls
/// [`begin`](Self::begin) → [`claim`](Self::claim) → handler statements on
/// [`connection`](Self::connection), possibly each inside [`savepoint`](Self::savepoint) …
/// [`release`](Self::release) or [`rollback_to`](Self::rollback_to) → [`prove`](Self::prove) →
/// [`commit`](Self::commit); or [`rollback`](Self::rollback) at any point after `begin`.
/// The counters are used outside a transaction only; each is its own commit.
///
/// # Cancel safety
/// No method is cancel safe. A dropped future leaves the connection in an unknown state: the
/// session notes that a call has not returned and closes the connection when it is dropped,
/// instead of giving it back. Nobody should rely on that: the consumer core never drops one.
///
/// # After an error
/// After any error but those of the counters, the only calls allowed are `rollback` and
/// [`discard`](Self::discard); after [`Fault::Unavailable`] and [`Fault::Unknown`] only `discard`.
#[async_trait]
pub trait Session: Send {
    /// The driver's own connection.
    type Connection: Send;

    /// Begins a transaction, with write intent and server-side time limits where the database has
    /// them.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn begin(&mut self) -> Result<(), StoreError>;

    /// Claims ids for a consumer with one statement: `true` for each that is ours now, `false` for
    /// each that was handled before. Waits for a transaction of somebody else that has claimed the
    /// same id and not ended. `ids` must be sorted and distinct: two batches that claim the same
    /// ids in different orders would deadlock.
    ///
    /// # Errors
    /// [`StoreError`]; a duplicate is not an error and leaves the transaction alive.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn claim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<Vec<bool>, StoreError>;

    /// The connection for the handler, inside the transaction. Nested `begin` makes savepoints.
    fn connection(&mut self) -> &mut Self::Connection;

    /// Begins a savepoint around one handler call.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn savepoint(&mut self) -> Result<(), StoreError>;

    /// Keeps what was done since the savepoint.
    ///
    /// # Errors
    /// [`Fault::Aborted`] when the handler swallowed an error and the savepoint cannot be kept; then
    /// [`rollback_to`](Self::rollback_to) is still allowed.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn release(&mut self) -> Result<(), StoreError>;

    /// Undoes what was done since the savepoint. The transaction goes on.
    ///
    /// # Errors
    /// [`StoreError`]: the transaction as a whole is lost.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn rollback_to(&mut self) -> Result<(), StoreError>;

    /// Gives up claims of this transaction whose handlers failed: a kept claim would swallow the
    /// retry.
    ///
    /// # Errors
    /// [`StoreError`].
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn unclaim(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError>;

    /// The last statement before COMMIT. Proves that this is still the transaction that made the
    /// claims, that it is alive, and that it holds exactly the rows of `ids` (sorted, distinct).
    /// Without it a handler that swallowed an SQL error would be confirmed and lost: PostgreSQL
    /// answers COMMIT of a failed transaction with ROLLBACK and drivers call that success.
    ///
    /// # Errors
    /// [`Fault::Aborted`] when the proof fails.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn prove(&mut self, consumer: &ConsumerName, ids: &[&MessageId]) -> Result<(), StoreError>;

    /// Commits.
    ///
    /// # Errors
    /// [`Fault::Conflict`] or [`Fault::Refused`] when the database answered that it did not commit;
    /// [`Fault::Unknown`] for everything else: it may have committed.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn commit(&mut self) -> Result<(), StoreError>;

    /// Ends the transaction without its writes.
    ///
    /// # Errors
    /// [`StoreError`]: discard the session.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn rollback(&mut self) -> Result<(), StoreError>;

    /// Counts one failure of a message in a commit of its own, and answers all of them.
    ///
    /// # Errors
    /// [`StoreError`]: not counted, or unknown.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn record_failure(
        &mut self,
        consumer: &ConsumerName,
        id: &MessageId,
        error: &str,
    ) -> Result<Failures, StoreError>;

    /// Counts one start of a message in a commit of its own, unless the message is handled already,
    /// and answers the number of starts counted so far (0: handled already). Used for suspects only.
    ///
    /// # Errors
    /// [`StoreError`]: not counted, or unknown.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn record_start(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<u32, StoreError>;

    /// Forgets failures and starts of a message: after a confirmed parking or a replay.
    ///
    /// # Errors
    /// [`StoreError`]: not forgotten, or unknown.
    ///
    /// # Cancel safety
    /// Not cancel safe, see the trait.
    async fn forget_attempts(&mut self, consumer: &ConsumerName, id: &MessageId) -> Result<(), StoreError>;

    /// Closes the connection instead of giving it back. The server rolls back what was open.
    fn discard(self);
}

/// The failures of one message so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// How many, this one included.
    pub count: u32,
    /// When the first was recorded, by the database's clock.
    pub first_at: OffsetDateTime,
    /// When the last was recorded, by the database's clock.
    pub last_at: OffsetDateTime,
}

/// What an error of the database means for the consumer core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Deadlock, serialization failure, busy: the transaction is run again at once, from the start,
    /// without an attempt.
    Conflict,
    /// No connection, server starting or stopping, pool empty: consumption pauses, no attempt.
    Unavailable,
    /// The transaction is not alive, or not the one that made the claims, or does not hold exactly
    /// what was claimed: a handler broke it. An attempt.
    Aborted,
    /// The database answered no: a constraint checked at COMMIT, a statement that is wrong. An
    /// attempt.
    Refused,
    /// COMMIT was sent and not answered. Claimed again on a new connection before anything is
    /// decided.
    Unknown,
    /// A setting lets a COMMIT vanish. Start is refused.
    Unsafe,
    /// The inbox's tables are missing or of another version. Start is refused.
    Schema,
}

impl Fault {
    /// The fault in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Aborted => "aborted",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Unsafe => "unsafe",
            Self::Schema => "schema",
        }
    }
}

/// An error of the store, classified.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StoreError {
    fault: Fault,
    what: String,
    #[source]
    source: Option<BoxError>,
}

impl StoreError {
    /// An error with what was being done, or what is wrong and how to mend it.
    #[must_use]
    pub fn new(fault: Fault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into(), source: None }
    }

    /// Adds the driver's error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What it means.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        self.fault
    }

    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.fault, Fault::Conflict | Fault::Unavailable | Fault::Unknown)
    }
}
