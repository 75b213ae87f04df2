//! Receiving with faults.

use async_trait::async_trait;

use aftercommit_core::{Batch, Capabilities, Signal, Source, SourceError};

use super::acker::FaultyAcker;
use super::script::{Action, Injected, Script, Seam, Side};

/// A source whose calls, and those of its ackers, go through a [`Script`].
pub struct FaultySource {
    inner: Box<dyn Source>,
    script: Script,
    /// The point before the current `recv`, once passed: a `recv` that is dropped and made again is
    /// one call of the trace, so that a loop with a `select!` has the same trace each time.
    before: Option<Action>,
    /// What was received while the point after it was not passed yet: kept for the next `recv`, so
    /// that the decorator is as cancel safe as what it wraps.
    received: Option<Result<Batch, SourceError>>,
}

impl FaultySource {
    /// Wraps a source.
    #[must_use]
    pub fn new(inner: Box<dyn Source>, script: Script) -> Self {
        Self { inner, script, before: None, received: None }
    }

    fn wrap(&self, batch: Batch) -> Result<Batch, SourceError> {
        let script = &self.script;
        let wrapped = batch
            .into_iter()
            .map(|delivery| delivery.map_acker(|acker| Box::new(FaultyAcker::new(acker, script.clone()))));
        Batch::new(wrapped.collect()).ok_or(SourceError::Closed)
    }
}

fn injected(kind: Injected) -> SourceError {
    SourceError::Backend { what: kind.to_string(), source: Some(Box::new(kind)) }
}

#[async_trait]
impl Source for FaultySource {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> Signal {
        self.inner.health()
    }

    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError> {
        let before = match self.before {
            Some(before) => before,
            None => *self.before.insert(self.script.point(Seam::Recv, Side::Before).await),
        };
        if before == Action::Fail {
            self.before = None;
            return Err(injected(Injected::NotMade));
        }
        if self.received.is_none() {
            self.received = Some(self.inner.recv(max).await);
        }
        let after = self.script.point(Seam::Recv, Side::After).await;
        self.before = None;
        let received = self.received.take().unwrap_or(Err(SourceError::Closed));
        if before == Action::LoseAnswer || after != Action::Go {
            return Err(injected(Injected::AnswerLost));
        }
        received.and_then(|batch| self.wrap(batch))
    }

    async fn close(self: Box<Self>) -> Result<(), SourceError> {
        let Self { inner, script, received, .. } = *self;
        drop(received);
        script.across(Seam::Close, inner.close(), injected).await
    }
}

impl std::fmt::Debug for FaultySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultySource").finish_non_exhaustive()
    }
}
