//! What nearly every trial does: migrate, open, begin, claim, write, look.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BoxError, ConsumerName, MessageId};
use aftercommit_inbox::{Fault, InboxStore, Session, StoreError};

use super::stage::{Act, StoreStage};

/// Fails the trial unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}
pub(crate) use ensure;

pub(crate) type Done = Result<(), BoxError>;

pub(crate) const CONSUMER: &str = "billing";

/// One store over fresh tables.
pub(crate) struct Scene<S: InboxStore> {
    pub(crate) stage: Arc<dyn StoreStage<S>>,
    pub(crate) store: S,
    pub(crate) consumer: ConsumerName,
}

impl<S: InboxStore> Scene<S> {
    pub(crate) async fn open(stage: Arc<dyn StoreStage<S>>) -> Result<Self, BoxError> {
        Self::with_connections(stage, 6).await
    }

    pub(crate) async fn with_connections(
        stage: Arc<dyn StoreStage<S>>,
        connections: u32,
    ) -> Result<Self, BoxError> {
        let store = stage.store(connections).await?;
        stage.migrate(&store).await?;
        Ok(Self { stage, store, consumer: ConsumerName::new(CONSUMER)? })
    }

    /// A session inside a transaction.
    pub(crate) async fn begun(&self) -> Result<S::Session, BoxError> {
        let mut session = self.store.open().await?;
        session.begin().await?;
        Ok(session)
    }

    /// A session inside a transaction that claimed these ids, all of which must be new.
    pub(crate) async fn claimed(&self, ids: &Ids) -> Result<S::Session, BoxError> {
        let mut session = self.begun().await?;
        let answers = session.claim(&self.consumer, &ids.refs()).await?;
        ensure!(answers.iter().all(|ours| *ours), "new ids were answered {answers:?}");
        Ok(session)
    }

    pub(crate) async fn act(&self, session: &mut S::Session, act: Act<'_>) -> Done {
        self.stage.act(session.connection(), act).await
    }

    /// Proves and commits.
    pub(crate) async fn finish(&self, session: &mut S::Session, ids: &Ids) -> Done {
        session.prove(&self.consumer, &ids.refs()).await?;
        Ok(session.commit().await?)
    }

    /// Handles these ids as the core does: claims, one effect for each that is new, proof, commit.
    /// Again after a conflict. Answers how many were new.
    pub(crate) async fn handle(&self, session: &mut S::Session, ids: &Ids) -> Result<Handled, BoxError> {
        let mut conflicts = 0;
        loop {
            match self.try_handle(session, ids).await {
                Ok(new) => return Ok(Handled { new, conflicts }),
                Err(error) if fault_of(error.as_ref()) == Some(Fault::Conflict) => conflicts += 1,
                Err(error) => return Err(error),
            }
            session.rollback().await?;
        }
    }

    async fn try_handle(&self, session: &mut S::Session, ids: &Ids) -> Result<usize, BoxError> {
        session.begin().await?;
        let answers = session.claim(&self.consumer, &ids.refs()).await?;
        let new =
            Ids(ids.0.iter().zip(answers).filter(|(_, ours)| *ours).map(|(id, _)| id.clone()).collect());
        for id in &new.0 {
            self.act(session, Act::Effect(id.as_str())).await?;
        }
        self.finish(session, &new).await?;
        Ok(new.0.len())
    }

    /// Waits for something that must happen.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        future: impl Future<Output = T> + Send,
    ) -> Result<T, BoxError> {
        let patience = self.stage.patience();
        match tokio::time::timeout(patience, future).await {
            Ok(found) => Ok(found),
            Err(_) => Err(format!("waited {patience:?} in vain: {what}").into()),
        }
    }

    /// Waits until the database has no transaction of ours any more.
    pub(crate) async fn until_none_is_open(&self) -> Done {
        let none_open = async {
            while self.stage.open_transactions().await? > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<_, BoxError>(())
        };
        self.within("no transaction is open", none_open).await?
    }

    pub(crate) async fn expect_effects(&self, expected: &[&str]) -> Done {
        let found = self.stage.effects().await?;
        ensure!(found == expected, "effects are {found:?}, not {expected:?}");
        Ok(())
    }

    pub(crate) async fn expect_claims(&self, expected: &Ids) -> Done {
        let found = self.stage.claims().await?;
        let expected: BTreeSet<_> =
            expected.0.iter().map(|id| (CONSUMER.to_owned(), id.as_str().to_owned())).collect();
        ensure!(
            found.iter().cloned().collect::<BTreeSet<_>>() == expected && found.len() == expected.len(),
            "claims are {found:?}, not {expected:?}"
        );
        Ok(())
    }

    /// The session and the store go on after whatever happened.
    pub(crate) async fn goes_on(&self, session: &mut S::Session) -> Done {
        let ids = ids(&["afterwards"])?;
        let handled = self.within("a message after it", self.handle(session, &ids)).await??;
        ensure!(handled.new == 1, "a new message after it was taken for a duplicate");
        let effects = self.stage.effects().await?;
        ensure!(effects.iter().any(|effect| effect == "afterwards"), "a commit after it left no effect");
        Ok(())
    }
}

/// What became of some ids.
pub(crate) struct Handled {
    /// How many were new.
    pub(crate) new: usize,
    /// How often it was run again.
    pub(crate) conflicts: usize,
}

/// Ids, sorted and distinct as [`Session`] demands.
#[derive(Clone, Debug)]
pub(crate) struct Ids(pub(crate) Vec<MessageId>);

impl Ids {
    pub(crate) fn refs(&self) -> Vec<&MessageId> {
        self.0.iter().collect()
    }
}

pub(crate) fn ids<T: AsRef<str>>(ids: &[T]) -> Result<Ids, BoxError> {
    let ids: BTreeSet<_> = ids.iter().map(|id| MessageId::new(id.as_ref())).collect::<Result<_, _>>()?;
    Ok(Ids(ids.into_iter().collect()))
}

pub(crate) fn id(text: &str) -> Result<MessageId, BoxError> {
    Ok(MessageId::new(text)?)
}

/// `0000`, `0001`, …
pub(crate) fn numbers(count: usize) -> Result<Ids, BoxError> {
    ids(&(0..count).map(|number| format!("{number:04}")).collect::<Vec<_>>())
}

/// The fault of a call that must have failed.
pub(crate) fn fault<T>(result: Result<T, StoreError>) -> Result<Fault, BoxError> {
    match result {
        Ok(_) => Err("a call succeeded that must fail".into()),
        Err(error) => Ok(error.fault()),
    }
}

pub(crate) fn expect_fault<T>(what: &str, result: Result<T, StoreError>, expected: Fault) -> Done {
    match result {
        Ok(_) => Err(format!("{what} succeeded instead of failing as {expected:?}").into()),
        Err(error) if error.fault() == expected => Ok(()),
        Err(error) => {
            let text = aftercommit_core::chain(&error);
            Err(format!("{what} failed as {:?} instead of {expected:?}: {text}", error.fault()).into())
        }
    }
}

fn fault_of(error: &(dyn std::error::Error + 'static)) -> Option<Fault> {
    error.downcast_ref::<StoreError>().map(StoreError::fault)
}
