//! Settling one delivery on the channel it came over.

use std::sync::Arc;

use aftercommit_core::{Acker, Redelivery, SettleError, Settled};
use async_trait::async_trait;
use lapin::options::BasicAckOptions;

use crate::error::PRODUCT;
use crate::source::{Item, Shelf};

const LOST: &str = "its channel or connection has ended";

/// The right to settle one delivery.
pub(crate) struct RabbitAcker {
    item: Item,
    shelf: Arc<Shelf>,
}

impl RabbitAcker {
    pub(crate) const fn new(item: Item, shelf: Arc<Shelf>) -> Self {
        Self { item, shelf }
    }
}

#[async_trait]
impl Acker for RabbitAcker {
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        let line = self.item.line();
        if line.is_ended() {
            return Err(SettleError::lost(LOST));
        }
        // Not lapin's own acker, which answers `Ok(false)` where this answers an error. The channel is
        // never opened again under the same handle, so a tag cannot reach another delivery.
        match line.channel().basic_ack(self.item.tag(), BasicAckOptions::default()).await {
            Ok(()) => Ok(Settled::Sent),
            // The frame was not written whole: the broker has heard nothing.
            Err(_) if line.is_ended() => Err(SettleError::lost(LOST)),
            Err(error) => Err(SettleError::Backend(Box::new(error))),
        }
    }

    async fn give_back(self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError> {
        let longest = self.shelf.longest();
        match when {
            Redelivery::After(delay) if delay > longest => Err(SettleError::Unsupported {
                product: PRODUCT,
                request: format!("hold a delivery for {delay:?}, the longest is {longest:?}"),
            }),
            _ => self.shelf.give_back(self.item, when).map_err(|()| SettleError::lost(LOST)),
        }
    }

    fn is_lost(&self) -> bool {
        self.item.line().is_ended()
    }
}
