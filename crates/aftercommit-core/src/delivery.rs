//! One message handed out by a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::acker::{Acker, Redelivery, SettleError, Settled};
use crate::message::Message;

/// Names one delivery inside this process, so that evidence for one cannot settle another. A
/// redelivery of the same message is another delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId(u64);

impl DeliveryId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Whether this message was handed out before, as far as broker and client know. A message that was
/// given back comes again with `Yes`, also where the client held it. A hint for bookkeeping: whether
/// a message is a duplicate is decided by the inbox alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redelivered {
    /// Never handed out before.
    No,
    /// Handed out before.
    Yes,
    /// The product does not say.
    #[default]
    Unknown,
}

/// One message handed out, with the right to settle it.
///
/// Dropping a delivery settles nothing.
#[must_use = "a dropped delivery is not settled and comes again only when its connection ends"]
pub struct Delivery {
    /// The message.
    pub message: Arc<Message>,
    /// The broker's hint.
    pub redelivered: Redelivered,
    id: DeliveryId,
    acker: Box<dyn Acker>,
}

impl Delivery {
    /// Binds a message to the right to settle it.
    pub fn new(message: Arc<Message>, redelivered: Redelivered, acker: Box<dyn Acker>) -> Self {
        Self { message, redelivered, id: DeliveryId::next(), acker }
    }

    /// This delivery's name.
    #[must_use]
    pub const fn id(&self) -> DeliveryId {
        self.id
    }

    /// See [`Acker::is_lost`].
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.acker.is_lost()
    }

    /// See [`Acker::give_back`].
    ///
    /// # Errors
    /// As [`Acker::give_back`].
    ///
    /// # Cancel safety
    /// As [`Acker::give_back`].
    pub async fn give_back(self, when: Redelivery) -> Result<Settled, SettleError> {
        self.acker.give_back(when).await
    }

    /// The acker alone, for code that has the right to settle and for decorators.
    #[must_use]
    pub fn into_acker(self) -> Box<dyn Acker> {
        self.acker
    }

    /// The same delivery with its acker wrapped: name, message and hint stay.
    pub fn map_acker(mut self, wrap: impl FnOnce(Box<dyn Acker>) -> Box<dyn Acker>) -> Self {
        self.acker = wrap(self.acker);
        self
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id)
            .field("redelivered", &self.redelivered)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

/// One or more deliveries, in the order of the source.
#[derive(Debug)]
#[must_use = "dropped deliveries are not settled"]
pub struct Batch(Vec<Delivery>);

impl Batch {
    /// `None` if there are no deliveries.
    #[must_use]
    pub fn new(deliveries: Vec<Delivery>) -> Option<Self> {
        (!deliveries.is_empty()).then_some(Self(deliveries))
    }

    /// The deliveries.
    #[must_use]
    pub fn into_vec(self) -> Vec<Delivery> {
        self.0
    }

    /// How many there are: at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl IntoIterator for Batch {
    type Item = Delivery;
    type IntoIter = std::vec::IntoIter<Delivery>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
