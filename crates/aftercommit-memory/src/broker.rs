//! The broker as a client sees it.

use std::sync::Arc;

use async_trait::async_trait;

use aftercommit_core::{Broker, BrokerError, Destination, Finding, Publisher, Source, Subscription};

use crate::broken::Broken;
use crate::publisher::MemoryPublisher;
use crate::queue::Queue;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::source::MemorySource;
use crate::state::State;
use crate::topology::dead_letters;

pub(crate) const PRODUCT: &str = "memory";

/// A new broker in memory, and a connection to it: what every product crate calls `connect`.
///
/// # Errors
/// None; the signature is the products'.
///
/// # Cancel safety
/// Cancel safe: it does not wait.
pub async fn connect(settings: Settings) -> Result<MemoryBroker, BrokerError> {
    Ok(MemoryBroker::with_settings(settings))
}

/// One connection to a broker in memory.
///
/// A clone is the same connection; [`connect`](Self::connect) makes another one to the same broker.
/// The methods beside [`Broker`] act from outside, as an operator, a network or a test does.
#[derive(Clone, Debug)]
pub struct MemoryBroker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: u64,
}

impl Default for MemoryBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBroker {
    /// A new broker with nothing in it and default settings, and a connection to it.
    #[must_use]
    pub fn new() -> Self {
        Self::with_settings(Settings::default())
    }

    /// The same with settings of one's own.
    #[must_use]
    pub fn with_settings(settings: Settings) -> Self {
        let mut state = State::new(settings);
        let connection = state.connect();
        Self { shared: Arc::new(Shared::new(state)), connection }
    }

    /// Another connection to the same broker.
    #[must_use]
    pub fn connect(&self) -> Self {
        let connection = self.shared.change(State::connect);
        Self { shared: Arc::clone(&self.shared), connection }
    }

    /// The connection's epoch, if the broker can be reached.
    async fn reach(&self) -> Result<u64, BrokerError> {
        if self.shared.lock().is(Broken::OpenHangs) {
            return Ok(self.shared.until(|state| state.connected(self.connection)).await);
        }
        let state = self.shared.lock();
        state.connected(self.connection).ok_or_else(|| {
            let reason = "the broker is away".to_owned();
            if state.is(Broken::AwayIsFinal) {
                return BrokerError::Denied { product: PRODUCT, address: PRODUCT.to_owned(), reason };
            }
            BrokerError::Unreachable { product: PRODUCT, address: PRODUCT.to_owned(), reason, source: None }
        })
    }

    async fn open(&self, queue: &str, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        self.reach().await?;
        let prefetch = {
            let mut state = self.shared.lock();
            if !state.queues.contains_key(queue) {
                if !state.is(Broken::OpenDeclares) {
                    return Err(BrokerError::Topology {
                        place: queue.to_owned(),
                        reason: "it does not exist".into(),
                        source: None,
                    });
                }
                state.queues.insert(queue.to_owned(), Queue::default());
            }
            if state.is(Broken::OpenSettles)
                && let Some(queue) = state.queues.get_mut(queue)
                && let Some(first) = queue.take(false)
            {
                queue.remove(first);
            }
            subscription.prefetch.unwrap_or(state.settings.prefetch)
        };
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(MemorySource::open(shared, self.connection, queue, prefetch.into())))
    }

    fn dead_letter_queue(&self, subscription: &Subscription) -> String {
        dead_letters(subscription, self.shared.lock().is(Broken::DeadLettersMixed))
    }
}

#[async_trait]
impl Broker for MemoryBroker {
    fn product(&self) -> &'static str {
        PRODUCT
    }

    async fn declare(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        self.reach().await?;
        self.shared.change(|state| state.declare(subscription))
    }

    async fn check(&self, subscription: &Subscription) -> Result<Vec<Finding>, BrokerError> {
        self.reach().await?;
        let findings = self.shared.lock().check(subscription);
        if self.shared.lock().is(Broken::CheckDeclares) {
            // What it cannot make stays a finding.
            let _ = self.shared.change(|state| state.declare(subscription));
        }
        Ok(findings)
    }

    async fn source(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        self.open(&subscription.source, subscription).await
    }

    async fn publisher(&self) -> Result<Box<dyn Publisher>, BrokerError> {
        let epoch = self.reach().await?;
        Ok(Box::new(MemoryPublisher::new(Arc::clone(&self.shared), self.connection, epoch)))
    }

    fn dead_letter(&self, subscription: &Subscription) -> Destination {
        Destination::new("").with_routing_key(self.dead_letter_queue(subscription))
    }

    async fn dead_letters(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        self.open(&self.dead_letter_queue(subscription), subscription).await
    }
}
