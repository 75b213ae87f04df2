//! What a source does whether or not anybody waits for a message: renewing leases, and looking whether the file works.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::fetch::Fetch;
use super::pulse::Pulse;
use super::shelf::Shelf;
use crate::clock::millis;
use crate::error::FileError;
use crate::table::{Mend, Renew, TryToWrite, from_the_future};

/// The longest pause between two looks.
const LOOK: Duration = Duration::from_millis(500);

pub(super) struct Keeper {
    pub(super) fetch: Arc<Fetch>,
    pub(super) shelf: Arc<Shelf>,
    pub(super) pulse: Arc<Pulse>,
}

impl Keeper {
    /// Until it is aborted.
    pub(super) async fn run(self) {
        let third = self.fetch.visibility() / 3;
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(LOOK.min(third / 2)).await;
            self.shelf.clear();
            let due = renewed.elapsed() >= third;
            // What failed is tried again at the next look, not a third later.
            if due && self.renew().await {
                renewed = Instant::now();
            } else if self.pulse.cannot_write() {
                let tried = self.fetch.file.write(TryToWrite).await;
                self.pulse.wrote(&tried);
            }
            let found = self.look().await;
            self.pulse.read(&found);
        }
    }

    async fn renew(&self) -> bool {
        let leases = self.shelf.to_renew();
        if leases.is_empty() {
            return true;
        }
        let visibility = millis(self.fetch.visibility());
        let renewed = self.fetch.file.write(Renew { leases, visibility }).await;
        self.pulse.wrote(&renewed);
        match renewed {
            Ok(lost) => {
                self.shelf.lose(&lost);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether the queue is there; a clock that jumped back is put right on the way.
    async fn look(&self) -> Result<bool, FileError> {
        let Some(sight) = self.fetch.look().await? else { return Ok(false) };
        let file = &self.fetch.file;
        let jumped =
            file.read(move |conn| Box::pin(async move { from_the_future(conn, sight.queue).await })).await?;
        if jumped {
            let mended = file.write(Mend { queue: sight.queue }).await?;
            tracing::warn!(mended, "the clock has jumped back: leases and delays begin anew");
        }
        Ok(true)
    }
}
