//! Publishing with faults.

use async_trait::async_trait;

use aftercommit_core::{Outgoing, PublishError, Publisher, Receipt};

use super::script::{Injected, Script, Seam};

/// A publisher whose calls go through a [`Script`]. A call that was not made is refused for now; a
/// lost answer is [`PublishError::Unknown`].
pub struct FaultyPublisher {
    inner: Box<dyn Publisher>,
    script: Script,
}

impl FaultyPublisher {
    /// Wraps a publisher.
    #[must_use]
    pub fn new(inner: Box<dyn Publisher>, script: Script) -> Self {
        Self { inner, script }
    }
}

#[async_trait]
impl Publisher for FaultyPublisher {
    async fn publish(&self, message: Outgoing) -> Result<Receipt, PublishError> {
        let destination = message.destination.clone();
        let error = |injected: Injected| match injected {
            Injected::NotMade => {
                PublishError::Refused { destination, reason: injected.to_string(), later: true }
            }
            Injected::AnswerLost => {
                PublishError::Unknown { destination, reason: injected.to_string(), source: None }
            }
        };
        self.script.across(Seam::Publish, self.inner.publish(message), error).await
    }
}

impl std::fmt::Debug for FaultyPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyPublisher").finish_non_exhaustive()
    }
}
