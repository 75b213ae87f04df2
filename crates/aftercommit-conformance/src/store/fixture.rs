//! What a database gives to the suite.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::BoxError;
use aftercommit_inbox::InboxStore;
use async_trait::async_trait;

use super::stage::StoreStage;

/// Something that not every database, or not every fixture, can do. A trial names what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ability {
    /// A failed statement makes the whole transaction fail.
    FailedTransactions,
    /// A statement can end the transaction as a whole ([`Act::EndInStatement`](super::Act)).
    EndInStatement,
    /// No COMMIT passes but the store's own.
    GuardedCommit,
    /// Constraints can be checked at COMMIT ([`Act::RefuseAtCommit`](super::Act)).
    DeferredConstraints,
    /// A transaction can make its own COMMIT unsafe ([`Act::UnsafeCommit`](super::Act)).
    UnsafeTransactions,
    /// Any code can be raised with any text ([`Act::ForeignConflict`](super::Act)).
    RaisedCodes,
    /// [`StoreStage::kill`].
    Kill,
    /// [`StoreStage::losing`].
    LostAnswers,
}

/// One database, as the suite sees it: it sets up a stage for each trial.
#[async_trait]
pub trait StoreFixture<S: InboxStore>: Send + Sync + 'static {
    /// Sets up a stage of its own for one trial, in a schema or file that nobody else uses.
    ///
    /// # Errors
    /// When the server is not there: say which, and how to start it. The trial fails.
    ///
    /// # Cancel safety
    /// A dropped future may leave things at the server.
    async fn stage(&self, trial: &str) -> Result<Arc<dyn StoreStage<S>>, BoxError>;

    /// What this database or this fixture lacks, each with its reason. Trials that need it are listed
    /// as absent.
    fn absent(&self) -> Vec<(Ability, &'static str)> {
        Vec::new()
    }

    /// How long one trial may take in all.
    fn deadline(&self) -> Duration {
        Duration::from_secs(120)
    }
}
