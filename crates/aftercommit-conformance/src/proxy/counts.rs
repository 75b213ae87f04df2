use std::sync::Arc;

use tokio::sync::watch;

use super::Direction;

/// What a proxy did since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that are open now, seen from the side that is not cut.
    pub open: u64,
    /// Bytes forwarded to the server.
    pub to_server: u64,
    /// Bytes forwarded to the client.
    pub to_client: u64,
    /// Bytes lost on purpose, both ways.
    pub swallowed: u64,
    /// Connections cut on purpose.
    pub cuts: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    now: watch::Sender<Counts>,
}

impl Counters {
    pub(super) fn now(&self) -> Counts {
        *self.now.borrow()
    }

    pub(super) async fn wait_until(&self, condition: impl FnMut(&Counts) -> bool) -> Counts {
        match self.now.subscribe().wait_for(condition).await {
            Ok(counts) => *counts,
            // The sender is self, so it cannot be gone.
            Err(_) => self.now(),
        }
    }

    pub(super) fn forwarded(&self, direction: Direction, bytes: usize) {
        self.now.send_modify(|counts| match direction {
            Direction::ToServer => counts.to_server += bytes as u64,
            Direction::ToClient => counts.to_client += bytes as u64,
        });
    }

    pub(super) fn swallowed(&self, bytes: usize) {
        self.now.send_modify(|counts| counts.swallowed += bytes as u64);
    }

    pub(super) fn cut(&self, connections: u64) {
        self.now.send_modify(|counts| counts.cuts += connections);
    }
}

/// An open connection, for as long as this lives.
#[derive(Debug)]
pub(super) struct Open {
    counters: Arc<super::Shared>,
}

impl Open {
    pub(super) fn new(shared: &Arc<super::Shared>) -> Self {
        shared.counts.now.send_modify(|counts| {
            counts.connections += 1;
            counts.open += 1;
        });
        Self { counters: Arc::clone(shared) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counters.counts.now.send_modify(|counts| counts.open -= 1);
    }
}
