//! Where one trial plays.

use std::time::Duration;

use aftercommit_core::BoxError;
use aftercommit_inbox::InboxStore;
use async_trait::async_trait;

/// What a handler does on its connection. An effect is a row in a table of the stage, which has no
/// unique key: it would hide a second effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act<'a> {
    /// Writes an effect.
    Effect(&'a str),
    /// Writes an effect in a nested transaction of the driver, which is committed.
    Nested(&'a str),
    /// Writes an effect in a nested transaction of the driver, which is rolled back.
    NestedUndone(&'a str),
    /// Sends a statement that the database refuses. The act fails.
    Fail,
    /// Fails with an error that speaks of deadlocks and lost connections, and whose code does not.
    Misleading,
    /// Sends ROLLBACK as SQL text.
    Rollback,
    /// Sends COMMIT as SQL text.
    Commit,
    /// Sends COMMIT, then BEGIN, as SQL text; the second even if the first fails.
    CommitAndBegin,
    /// Deletes a claim from the inbox's table.
    DeleteClaim {
        /// Of whom.
        consumer: &'a str,
        /// Which.
        id: &'a str,
    },
    /// Sends a statement after whose failure the transaction is over. The act fails.
    EndInStatement,
    /// Writes something that the database refuses at COMMIT.
    RefuseAtCommit,
    /// Makes this transaction's COMMIT one that can vanish.
    UnsafeCommit,
    /// Fails with a serialization failure whose text is in another language.
    ForeignConflict,
}

/// Which part of the next COMMIT is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The request: the database never hears of it.
    Request,
    /// The answer: the database commits.
    Answer,
}

/// What the counters' table says about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Of whom.
    pub consumer: String,
    /// Which.
    pub id: String,
    /// How many failures.
    pub failures: u32,
    /// How many starts.
    pub starts: u32,
    /// The last error.
    pub last_error: Option<String>,
}

/// The surroundings of one trial: stores under test, and the hands to do to them what happens in the
/// field. Methods for an [`Ability`](super::Ability) that the fixture declares absent are never
/// called and need not be written.
#[async_trait]
pub trait StoreStage<S: InboxStore>: Send + Sync {
    /// A store with a pool of its own of so many connections, which waits for one a second at most.
    /// All stores of a stage use the same tables, which this does not make.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing behind.
    async fn store(&self, connections: u32) -> Result<S, BoxError>;

    /// The store's own migrations.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// As the store's.
    async fn migrate(&self, store: &S) -> Result<(), BoxError>;

    /// Does what a handler does.
    ///
    /// # Errors
    /// The driver's, as it is or as a source.
    ///
    /// # Cancel safety
    /// As a handler's.
    async fn act(&self, db: &mut S::Connection, act: Act<'_>) -> Result<(), BoxError>;

    /// The committed effects, sorted, seen by a connection of its own.
    ///
    /// # Errors
    /// When the database does not say.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn effects(&self) -> Result<Vec<String>, BoxError>;

    /// The committed claims as (consumer, id), sorted, seen by a connection of its own.
    ///
    /// # Errors
    /// When the database does not say.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn claims(&self) -> Result<Vec<(String, String)>, BoxError>;

    /// The counters, seen by a connection of its own.
    ///
    /// # Errors
    /// When the database does not say.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn attempts(&self) -> Result<Vec<Attempts>, BoxError>;

    /// How many transactions the stage's stores have open, as the database says.
    ///
    /// # Errors
    /// When the database does not say.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn open_transactions(&self) -> Result<usize, BoxError>;

    /// Stores whose COMMIT can vanish, each with the setting that its check must name.
    ///
    /// # Errors
    /// When they cannot be made.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing behind.
    async fn unsafe_stores(&self) -> Result<Vec<(&'static str, S)>, BoxError>;

    /// Makes the bookkeeping of migrations say that the tables are of a later version.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn pretend_newer(&self) -> Result<(), BoxError>;

    /// Ends the connections of the stage's stores from the server's side.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future may have done it.
    async fn kill(&self) -> Result<(), BoxError> {
        Err(cannot("kill connections"))
    }

    /// A store as [`store`](Self::store), whose next COMMIT loses something on its way.
    ///
    /// # Errors
    /// When it cannot be made.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing behind.
    async fn losing(&self, lost: Lost) -> Result<S, BoxError> {
        Err(cannot(&format!("lose the {lost:?} of a COMMIT")))
    }

    /// Removes what the trial made. Called at the end, whatever the result.
    ///
    /// # Errors
    /// When that fails, and the trial with it.
    ///
    /// # Cancel safety
    /// A dropped future leaves things at the server.
    async fn strike(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// How long a trial waits for something that must come.
    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}

fn cannot(what: &str) -> BoxError {
    format!("this stage cannot {what}: declare the ability absent or write the method").into()
}
