//! Looking, and claiming if there is something.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::millis;
use crate::error::FileError;
use crate::file::File;
use crate::table::{self, Claim, Claimed, Lease, Sight};

/// What a fetch came back with.
pub(super) enum Fetched {
    Some(Vec<(Lease, Claimed)>),
    Nothing,
    /// The queue does not exist.
    Missing,
    NotRead(FileError),
    NotClaimed(FileError),
}

/// One queue as a source looks at it.
pub(super) struct Fetch {
    pub(super) file: Arc<File>,
    queue: String,
    visibility: Duration,
}

impl Fetch {
    pub(super) fn new(file: Arc<File>, queue: &str, visibility: Duration) -> Self {
        Self { file, queue: queue.to_owned(), visibility }
    }

    pub(super) const fn visibility(&self) -> Duration {
        self.visibility
    }

    pub(super) async fn look(&self) -> Result<Option<Sight>, FileError> {
        let queue = self.queue.clone();
        self.file.read(move |conn| Box::pin(async move { table::look(conn, &queue).await })).await
    }

    /// Reads first: a look takes no lock, and an idle queue costs nobody anything.
    pub(super) async fn run(self: Arc<Self>, most: usize) -> Fetched {
        let sight = match self.look().await {
            Ok(Some(sight)) if sight.something => sight,
            Ok(Some(_)) => return Fetched::Nothing,
            Ok(None) => return Fetched::Missing,
            Err(error) => return Fetched::NotRead(error),
        };
        let token = Uuid::new_v4().into_bytes();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let claim = Claim { queue: sight.queue, token, most, visibility: millis(self.visibility) };
        match self.file.write(claim).await {
            // Another process was quicker.
            Ok(claimed) if claimed.is_empty() => Fetched::Nothing,
            Ok(claimed) => {
                let lease = |claimed: &Claimed| Lease { position: claimed.position, token };
                Fetched::Some(claimed.into_iter().map(|claimed| (lease(&claimed), claimed)).collect())
            }
            Err(error) => Fetched::NotClaimed(error),
        }
    }
}
