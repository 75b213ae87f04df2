//! What a database gives to the suite.

use std::sync::Arc;

use async_trait::async_trait;

use aftercommit_core::{BoxError, Failure};
use aftercommit_inbox::InboxStore;

/// One database, as the suite sees it: it opens a ledger for each trial.
#[async_trait]
pub trait Books: Send + Sync + 'static {
    /// The store under test.
    type Store: InboxStore;

    /// The database's name, as [`InboxStore::product`] says it.
    fn product(&self) -> &'static str;

    /// Why transactions cannot run side by side, if they cannot. Trials that need that are listed as
    /// absent with this reason.
    fn one_writer(&self) -> Option<&'static str> {
        None
    }

    /// Makes a schema or file of its own for one trial, with the inbox's tables and an empty table
    /// of effects.
    ///
    /// # Errors
    /// When the server is not there: say which, and how to start it. The trial fails.
    ///
    /// # Cancel safety
    /// A dropped future may leave things at the server.
    async fn open(&self, trial: &str) -> Result<Arc<dyn Ledger<Self::Store>>, BoxError>;
}

/// What a handler wrote for a message: the business's side of the promise. The table has no unique
/// key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Effect {
    /// Whose handler wrote it.
    pub consumer: String,
    /// For which message.
    pub id: Vec<u8>,
    /// What it says.
    pub note: String,
}

/// The database of one trial.
#[async_trait]
pub trait Ledger<S: InboxStore>: Send + Sync {
    /// A store over connections of its own, as another process would have it.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// A dropped future leaves no connection behind.
    async fn store(&self) -> Result<S, BoxError>;

    /// Writes an effect, as a handler does.
    ///
    /// # Errors
    /// The driver's error, converted as by `?`.
    ///
    /// # Cancel safety
    /// As the driver's.
    async fn record(&self, db: &mut S::Connection, effect: &Effect) -> Result<(), Failure>;

    /// Runs a statement that fails, in the worst way that this database knows: the transaction is
    /// over or dead afterwards.
    ///
    /// # Errors
    /// Always.
    ///
    /// # Cancel safety
    /// As the driver's.
    async fn stumble(&self, db: &mut S::Connection) -> Result<(), Failure>;

    /// Runs a statement without parameters, past the driver's own notion of a transaction.
    ///
    /// # Errors
    /// The driver's error.
    ///
    /// # Cancel safety
    /// As the driver's.
    async fn raw(&self, db: &mut S::Connection, sql: &'static str) -> Result<(), Failure>;

    /// All effects in the order of writing, from a connection that no store uses.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn effects(&self) -> Result<Vec<Effect>, BoxError>;

    /// The inbox's rows: consumer and id.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn handled(&self) -> Result<Vec<(String, String)>, BoxError>;

    /// How many failures are counted, over all messages.
    ///
    /// # Errors
    /// When that fails.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn failures(&self) -> Result<u64, BoxError>;

    /// Removes what the trial made.
    ///
    /// # Errors
    /// When that fails, and the trial with it.
    ///
    /// # Cancel safety
    /// A dropped future leaves things at the server.
    async fn strike(&self) -> Result<(), BoxError>;
}
