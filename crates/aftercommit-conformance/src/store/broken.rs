//! A store with one promise broken, so that the suite can be seen to notice.

mod fixture;
mod session;

use std::error::Error;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use aftercommit_inbox::{Fault, InboxStore, StoreError};
use async_trait::async_trait;

pub use fixture::BrokenFixture;
pub use session::BrokenSession;

/// Which promise is broken. One at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Broken {
    /// Keys compare without regard to case.
    FoldsCase,
    /// The consumer is no part of the key.
    ForgetsConsumers,
    /// Only the first 100 characters of an id count.
    CutsIds,
    /// Every claim is answered yes.
    ClaimsTwice,
    /// The answers of a claim come in the wrong order.
    TurnsAnswersRound,
    /// A duplicate is an error.
    ChokesOnDuplicates,
    /// A transaction beside another one is a conflict at once.
    NeverWaits,
    /// The proof succeeds whatever happened.
    ProvesAlways,
    /// The proof is of what was claimed, not of what was handled.
    ProvesTheWrongIds,
    /// Nobody needs the proof.
    CommitsUnproved,
    /// An error of COMMIT is taken for success.
    SwallowsCommitErrors,
    /// COMMIT does nothing, and says that it did.
    CommitsNothing,
    /// A refusal of COMMIT is taken for a lost answer.
    MistakesRefusals,
    /// A rollback commits.
    RollbackCommits,
    /// A rollback always succeeds.
    RollsBackAnything,
    /// Savepoints are not set.
    SetsNoSavepoints,
    /// What fails in a savepoint takes the whole transaction along.
    RollsBackAll,
    /// Claims of failed messages are kept.
    UnclaimsNothing,
    /// Giving up a claim of somebody else succeeds.
    UnclaimsAnything,
    /// Dropped sessions stay open.
    KeepsDropped,
    /// A failure counts as two.
    CountsTwice,
    /// A start counts as two.
    StartsTwice,
    /// Failures are not written down.
    CountsNothing,
    /// The time of the first failure is that of the last.
    MovesFirstTimes,
    /// The last error is not written down.
    LosesTexts,
    /// A text with a NUL cannot be written down.
    ChokesOnNul,
    /// A start counts as a failure too.
    MixesCounters,
    /// A handled message is started again.
    StartsHandled,
    /// Counters are never forgotten.
    ForgetsNothing,
    /// Errors are judged by their texts.
    JudgesByText,
    /// No error of a handler is the database's.
    JudgesNothing,
    /// An empty pool is the message's fault.
    MistakesEmptyPools,
    /// Any setting is accepted.
    ChecksNothing,
    /// No setting is accepted.
    RefusesAll,
    /// All connections may be held for good.
    HoldsAll,
    /// A transaction may begin inside another one.
    BeginsTwice,
    /// Tables of a later version are taken for current.
    MigratesBlindly,
    /// Migrating again loses rows.
    MigratesAnew,
}

impl Broken {
    /// Every switch.
    pub const ALL: &'static [Self] = &[
        Self::FoldsCase,
        Self::ForgetsConsumers,
        Self::CutsIds,
        Self::ClaimsTwice,
        Self::TurnsAnswersRound,
        Self::ChokesOnDuplicates,
        Self::NeverWaits,
        Self::ProvesAlways,
        Self::ProvesTheWrongIds,
        Self::CommitsUnproved,
        Self::SwallowsCommitErrors,
        Self::CommitsNothing,
        Self::MistakesRefusals,
        Self::RollbackCommits,
        Self::RollsBackAnything,
        Self::SetsNoSavepoints,
        Self::RollsBackAll,
        Self::UnclaimsNothing,
        Self::UnclaimsAnything,
        Self::KeepsDropped,
        Self::CountsTwice,
        Self::StartsTwice,
        Self::CountsNothing,
        Self::MovesFirstTimes,
        Self::LosesTexts,
        Self::ChokesOnNul,
        Self::MixesCounters,
        Self::StartsHandled,
        Self::ForgetsNothing,
        Self::JudgesByText,
        Self::JudgesNothing,
        Self::MistakesEmptyPools,
        Self::ChecksNothing,
        Self::RefusesAll,
        Self::HoldsAll,
        Self::BeginsTwice,
        Self::MigratesBlindly,
        Self::MigratesAnew,
    ];
}

/// A store around another one, with one promise broken.
#[derive(Debug)]
pub struct BrokenStore<S: InboxStore> {
    inner: S,
    broken: Broken,
    kept: Arc<Mutex<Vec<S::Session>>>,
    open: Arc<AtomicUsize>,
}

impl<S: InboxStore> BrokenStore<S> {
    /// Breaks a promise of a store.
    #[must_use]
    pub fn new(inner: S, broken: Broken) -> Self {
        Self { inner, broken, kept: Arc::default(), open: Arc::default() }
    }
}

#[async_trait]
impl<S: InboxStore> InboxStore for BrokenStore<S> {
    type Connection = S::Connection;
    type Session = BrokenSession<S::Session>;

    fn product(&self) -> &'static str {
        self.inner.product()
    }

    fn max_sessions(&self) -> usize {
        match self.broken {
            Broken::HoldsAll => usize::MAX,
            _ => self.inner.max_sessions(),
        }
    }

    async fn check(&self) -> Result<(), StoreError> {
        match self.broken {
            Broken::ChecksNothing => Ok(()),
            Broken::RefusesAll => Err(StoreError::new(Fault::Unsafe, "refused")),
            _ => self.inner.check().await,
        }
    }

    async fn open(&self) -> Result<Self::Session, StoreError> {
        let session = self.inner.open().await.map_err(|error| match self.broken {
            Broken::MistakesEmptyPools => StoreError::new(Fault::Refused, "no connection"),
            _ => error,
        })?;
        Ok(BrokenSession::new(session, self.broken, Arc::clone(&self.kept), Arc::clone(&self.open)))
    }

    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Fault> {
        match self.broken {
            Broken::JudgesNothing => None,
            Broken::JudgesByText => {
                let text = aftercommit_core::chain(error);
                let conflict = ["deadlock", "locked", "serialize"].iter().any(|word| text.contains(word));
                let away = ["connection", "timed out"].iter().any(|word| text.contains(word));
                conflict.then_some(Fault::Conflict).or_else(|| away.then_some(Fault::Unavailable))
            }
            _ => self.inner.classify(error),
        }
    }
}
