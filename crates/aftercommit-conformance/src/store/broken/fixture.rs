use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BoxError, ConsumerName, MessageId};
use aftercommit_inbox::{InboxStore, Session};
use async_trait::async_trait;

use super::{Broken, BrokenStore};
use crate::store::fixture::{Ability, StoreFixture};
use crate::store::stage::{Act, Attempts, Lost, StoreStage};

/// A fixture whose stores have one promise broken.
#[derive(Debug)]
pub struct BrokenFixture<F> {
    inner: F,
    broken: Broken,
}

impl<F> BrokenFixture<F> {
    /// Breaks a promise of every store of a fixture.
    #[must_use]
    pub const fn new(inner: F, broken: Broken) -> Self {
        Self { inner, broken }
    }
}

#[async_trait]
impl<S: InboxStore, F: StoreFixture<S>> StoreFixture<BrokenStore<S>> for BrokenFixture<F> {
    async fn stage(&self, trial: &str) -> Result<Arc<dyn StoreStage<BrokenStore<S>>>, BoxError> {
        let inner = self.inner.stage(trial).await?;
        Ok(Arc::new(BrokenStage { inner, broken: self.broken }))
    }

    fn absent(&self) -> Vec<(Ability, &'static str)> {
        self.inner.absent()
    }

    fn deadline(&self) -> Duration {
        Duration::from_secs(60)
    }
}

struct BrokenStage<S: InboxStore> {
    inner: Arc<dyn StoreStage<S>>,
    broken: Broken,
}

impl<S: InboxStore> BrokenStage<S> {
    fn breaks(&self, store: S) -> BrokenStore<S> {
        BrokenStore::new(store, self.broken)
    }
}

#[async_trait]
impl<S: InboxStore> StoreStage<BrokenStore<S>> for BrokenStage<S> {
    async fn store(&self, connections: u32) -> Result<BrokenStore<S>, BoxError> {
        Ok(self.breaks(self.inner.store(connections).await?))
    }

    async fn migrate(&self, store: &BrokenStore<S>) -> Result<(), BoxError> {
        let migrated = self.inner.migrate(&store.inner).await;
        match self.broken {
            Broken::MigratesBlindly => Ok(()),
            Broken::MigratesAnew => {
                migrated?;
                lose_a_row(self.inner.as_ref(), &store.inner).await
            }
            _ => migrated,
        }
    }

    async fn act(&self, db: &mut S::Connection, act: Act<'_>) -> Result<(), BoxError> {
        self.inner.act(db, act).await
    }

    async fn effects(&self) -> Result<Vec<String>, BoxError> {
        self.inner.effects().await
    }

    async fn claims(&self) -> Result<Vec<(String, String)>, BoxError> {
        self.inner.claims().await
    }

    async fn attempts(&self) -> Result<Vec<Attempts>, BoxError> {
        self.inner.attempts().await
    }

    async fn open_transactions(&self) -> Result<usize, BoxError> {
        self.inner.open_transactions().await
    }

    async fn unsafe_stores(&self) -> Result<Vec<(&'static str, BrokenStore<S>)>, BoxError> {
        let stores = self.inner.unsafe_stores().await?;
        Ok(stores.into_iter().map(|(setting, store)| (setting, self.breaks(store))).collect())
    }

    async fn pretend_newer(&self) -> Result<(), BoxError> {
        self.inner.pretend_newer().await
    }

    async fn kill(&self) -> Result<(), BoxError> {
        self.inner.kill().await
    }

    async fn losing(&self, lost: Lost) -> Result<BrokenStore<S>, BoxError> {
        Ok(self.breaks(self.inner.losing(lost).await?))
    }

    async fn strike(&self) -> Result<(), BoxError> {
        self.inner.strike().await
    }

    fn patience(&self) -> Duration {
        match self.broken {
            // The one that lets trials wait in vain.
            Broken::KeepsDropped => Duration::from_secs(3),
            _ => self.inner.patience(),
        }
    }
}

/// As a migration that makes a table anew.
async fn lose_a_row<S: InboxStore>(stage: &dyn StoreStage<S>, store: &S) -> Result<(), BoxError> {
    let consumer = ConsumerName::new("billing")?;
    let one = MessageId::new("1")?;
    let mut session = store.open().await?;
    session.begin().await?;
    stage
        .act(session.connection(), Act::DeleteClaim { consumer: consumer.as_str(), id: one.as_str() })
        .await?;
    session.prove(&consumer, &[]).await?;
    Ok(session.commit().await?)
}
