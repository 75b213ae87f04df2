//! Settling one delivery with the token of its claim.

use std::sync::Arc;

use aftercommit_core::{Acker, Redelivery, SettleError, Settled};
use async_trait::async_trait;

use crate::clock::millis;
use crate::error::PRODUCT;
use crate::file::File;
use crate::source::{Held, LONGEST_DELAY, Shelf};
use crate::table::{Ack, GiveBack};

const LOST: &str = "its lease has ended";
const CLOSED: &str = "its source was closed";

/// The right to settle one delivery. Dropped unused it settles nothing: the lease is renewed no more, and when it ends the
/// message comes again.
pub(crate) struct QueueAcker {
    held: Held,
    shelf: Arc<Shelf>,
    file: Arc<File>,
}

impl QueueAcker {
    pub(crate) const fn new(held: Held, shelf: Arc<Shelf>, file: Arc<File>) -> Self {
        Self { held, shelf, file }
    }

    fn is_ours(&self) -> Result<(), SettleError> {
        if self.shelf.is_closed() {
            return Err(SettleError::lost(CLOSED));
        }
        if self.held.is_lost() { Err(SettleError::lost(LOST)) } else { Ok(()) }
    }

    /// The table decides, whatever this process believes: a lease that has ended and that nobody took is still ours.
    fn settled(&self, ours: bool) -> Result<Settled, SettleError> {
        self.shelf.remove(self.held.lease());
        if ours { Ok(Settled::Confirmed) } else { Err(SettleError::lost(LOST)) }
    }
}

#[async_trait]
impl Acker for QueueAcker {
    async fn ack(self: Box<Self>) -> Result<Settled, SettleError> {
        self.is_ours()?;
        let ours = self.file.write(Ack(self.held.lease())).await?;
        self.settled(ours)
    }

    async fn give_back(self: Box<Self>, when: Redelivery) -> Result<Settled, SettleError> {
        let after = match when {
            Redelivery::Now => None,
            Redelivery::After(delay) if delay > LONGEST_DELAY => {
                return Err(SettleError::Unsupported {
                    product: PRODUCT,
                    request: format!("keep a message back for {delay:?}, the longest is {LONGEST_DELAY:?}"),
                });
            }
            // Never early: a part of a millisecond counts as a whole one.
            Redelivery::After(delay) => Some(millis(delay) + 1),
        };
        self.is_ours()?;
        let ours = self.file.write(GiveBack { lease: self.held.lease(), after }).await?;
        self.settled(ours)
    }

    fn is_lost(&self) -> bool {
        self.is_ours().is_err()
    }
}

impl Drop for QueueAcker {
    fn drop(&mut self) {
        // Does nothing for what was settled.
        self.shelf.abandon(self.held.lease());
    }
}
