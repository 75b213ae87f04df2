//! The one place that tells a broker "done", and what it wants to see first.

use aftercommit_core::{Delivery, DeliveryId, Receipt, SettleError, Settled};

/// Proof that a delivery may be confirmed. Made only in this crate, for one delivery, after the
/// fact it names; it cannot be made beforehand, copied or used for another delivery.
#[derive(Debug)]
pub struct Evidence {
    delivery: DeliveryId,
    kind: EvidenceKind,
}

/// What proves that a delivery may be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvidenceKind {
    /// COMMIT of the transaction with the claim and the handler's writes was answered.
    Committed,
    /// The inbox holds the id in a committed transaction.
    Duplicate,
    /// A copy was published to the dead letters and the broker confirmed and routed it.
    Parked(Receipt),
}

impl Evidence {
    pub(crate) const fn committed(delivery: &Delivery) -> Self {
        Self { delivery: delivery.id(), kind: EvidenceKind::Committed }
    }

    pub(crate) const fn duplicate(delivery: &Delivery) -> Self {
        Self { delivery: delivery.id(), kind: EvidenceKind::Duplicate }
    }

    pub(crate) const fn parked(delivery: &Delivery, receipt: Receipt) -> Self {
        Self { delivery: delivery.id(), kind: EvidenceKind::Parked(receipt) }
    }

    /// What it proves.
    #[must_use]
    pub const fn kind(&self) -> &EvidenceKind {
        &self.kind
    }
}

/// Confirms a delivery against its evidence.
///
/// # Errors
/// As [`Acker::ack`](aftercommit_core::Acker::ack). Evidence of another delivery settles nothing
/// and is [`SettleError::Lost`].
///
/// # Cancel safety
/// As [`Acker::ack`](aftercommit_core::Acker::ack): at worst the message comes again and the inbox
/// knows it.
pub(crate) async fn settle(delivery: Delivery, evidence: Evidence) -> Result<Settled, SettleError> {
    if delivery.id() != evidence.delivery {
        return Err(SettleError::lost("the evidence is for another delivery"));
    }
    #[expect(clippy::disallowed_methods, reason = "this is the place that holds the evidence")]
    delivery.into_acker().ack().await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use aftercommit_core::{Acker, Message, Redelivered, Redelivery};
    use async_trait::async_trait;

    use super::*;

    struct Noting(Arc<AtomicBool>);

    #[async_trait]
    impl Acker for Noting {
        async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
            self.0.store(true, Ordering::SeqCst);
            Ok(Settled::Confirmed)
        }

        async fn give_back(self: Box<Self>, _: Redelivery) -> Result<Settled, SettleError> {
            Ok(Settled::Confirmed)
        }
    }

    fn delivery() -> (Delivery, Arc<AtomicBool>) {
        let acked = Arc::new(AtomicBool::new(false));
        let acker = Box::new(Noting(Arc::clone(&acked)));
        (Delivery::new(Arc::new(Message::new("")), Redelivered::No, acker), acked)
    }

    #[tokio::test]
    async fn evidence_settles_its_own_delivery() {
        let (delivery, acked) = delivery();
        let evidence = Evidence::committed(&delivery);
        assert!(settle(delivery, evidence).await.is_ok());
        assert!(acked.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn evidence_of_another_delivery_settles_nothing() {
        let (one, acked) = delivery();
        let (other, _) = delivery();
        let evidence = Evidence::committed(&other);
        assert!(matches!(settle(one, evidence).await, Err(SettleError::Lost { .. })));
        assert!(!acked.load(Ordering::SeqCst));
    }
}
