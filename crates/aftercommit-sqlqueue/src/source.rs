//! A subscription that goes on by itself.

mod fetch;
mod keeper;
mod pulse;
mod shelf;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{
    Batch, Capabilities, Delay, Delivery, Order, Redelivered, Settled, Signal, Source, SourceError,
};
use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::acker::QueueAcker;
use crate::config::Config;
use crate::error::PRODUCT;
use crate::file::File;
use crate::table::{Claimed, Release};
use fetch::{Fetch, Fetched};
use keeper::Keeper;
use pulse::Pulse;

pub(crate) use shelf::{Held, Shelf};

/// How many deliveries are out unsettled if nobody says.
const PREFETCH: u16 = 200;

/// The longest that a message may be given back for.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// The pause after which it is looked again; it grows while nothing comes.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause while the file does not work.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The deliveries of one queue.
pub(crate) struct QueueSource {
    file: Arc<File>,
    shelf: Arc<Shelf>,
    pulse: Arc<Pulse>,
    fetch: Arc<Fetch>,
    prefetch: u16,
    longest_pause: Duration,
    changes: watch::Receiver<u64>,
    pause: Duration,
    /// A fetch under way outlives the `recv` that asked for it: what it claims is handed out by the next one.
    fetching: Option<JoinHandle<Fetched>>,
    ready: VecDeque<(Held, Claimed)>,
    keeper: JoinHandle<()>,
}

impl QueueSource {
    pub(crate) fn open(file: Arc<File>, config: &Config, queue: &str, prefetch: Option<u16>) -> Self {
        let prefetch = prefetch.unwrap_or(PREFETCH);
        let pulse = Arc::new(Pulse::new(queue));
        let shelf = Arc::new(Shelf::new(prefetch.into(), config.visibility));
        let fetch = Arc::new(Fetch::new(Arc::clone(&file), queue, config.visibility));
        let keeper =
            Keeper { fetch: Arc::clone(&fetch), shelf: Arc::clone(&shelf), pulse: Arc::clone(&pulse) };
        Self {
            changes: file.changes(),
            file,
            shelf,
            pulse,
            fetch,
            prefetch,
            longest_pause: config.poll,
            pause: FIRST_PAUSE,
            fetching: None,
            ready: VecDeque::new(),
            keeper: tokio::spawn(keeper.run()),
        }
    }

    fn hand_out(&mut self, max: usize) -> Option<Batch> {
        let count = self.ready.len().min(max);
        let deliveries = self.ready.drain(..count).map(|(held, claimed)| {
            let redelivered = if claimed.again { Redelivered::Yes } else { Redelivered::No };
            let acker = QueueAcker::new(held, Arc::clone(&self.shelf), Arc::clone(&self.file));
            Delivery::new(Arc::new(claimed.message()), redelivered, Box::new(acker))
        });
        Batch::new(deliveries.collect())
    }

    /// Starts a fetch, or goes on with the one under way, and takes in what it has claimed. Answers how long to wait at
    /// most if that is nothing.
    async fn take_in(&mut self, max: usize) -> Option<Duration> {
        if self.fetching.is_none() {
            // Before looking, so that no change falls between the look and the wait.
            self.changes.mark_unchanged();
            let most = self.shelf.room().min(max);
            self.fetching = Some(tokio::spawn(Arc::clone(&self.fetch).run(most)));
        }
        let fetched = match &mut self.fetching {
            Some(fetching) => fetching.await,
            None => return None,
        };
        self.fetching = None;
        // A fetch fails with its runtime alone.
        let fetched = fetched.unwrap_or(Fetched::Nothing);
        self.pulse.hear(&fetched);
        match fetched {
            Fetched::Some(leases) => {
                self.ready.extend(self.shelf.put(leases));
                self.pause = FIRST_PAUSE;
                None
            }
            Fetched::Nothing => Some(self.longest_pause),
            Fetched::Missing | Fetched::NotRead(_) | Fetched::NotClaimed(_) => Some(LONGEST_PAUSE),
        }
    }

    /// Waits for a change of this process, or for as long as the pause has grown.
    async fn wait(&mut self, longest: Duration) {
        let pause = self.pause.min(longest);
        self.pause = (self.pause * 2).min(longest);
        // Whether time passed or something changed, it is looked again; the sender lives as long as the file.
        drop(tokio::time::timeout(pause, self.changes.changed()).await);
    }
}

#[async_trait]
impl Source for QueueSource {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(PRODUCT, self.prefetch.into());
        capabilities.settled = Settled::Confirmed;
        capabilities.order = Order::PerSource;
        capabilities.says_redelivered = true;
        capabilities.delay = Delay::Native { longest: LONGEST_DELAY };
        capabilities
    }

    fn health(&self) -> Signal {
        self.pulse.signal()
    }

    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError> {
        let max = max.max(1);
        loop {
            if let Some(batch) = self.hand_out(max) {
                return Ok(batch);
            }
            if self.fetching.is_none() && self.shelf.room() == 0 {
                self.shelf.wait_for_room().await;
                continue;
            }
            if let Some(longest) = self.take_in(max).await {
                self.wait(longest).await;
            }
        }
    }

    async fn close(mut self: Box<Self>) -> Result<(), SourceError> {
        self.keeper.abort();
        self.shelf.close();
        self.pulse.end();
        if let Some(fetching) = self.fetching.take()
            && let Ok(Fetched::Some(leases)) = fetching.await
        {
            self.shelf.put(leases);
        }
        let unsettled = self.shelf.leases();
        if unsettled.is_empty() {
            return Ok(());
        }
        self.file.write(Release(unsettled)).await.map_err(|error| SourceError::Backend {
            what: "what is unsettled could not be given back and comes again when its leases end".to_owned(),
            source: Some(Box::new(error)),
        })
    }
}

/// As the death of the process: leases end by themselves.
impl Drop for QueueSource {
    fn drop(&mut self) {
        self.keeper.abort();
        self.shelf.close();
        self.pulse.end();
    }
}
