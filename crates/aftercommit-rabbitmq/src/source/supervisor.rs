use std::sync::Arc;

use aftercommit_core::Signal;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::session::{End, Session, Subscribed};
use super::shelf::Shelf;
use crate::backoff::Backoff;

/// Keeps one subscription alive: generation after generation, for ever.
pub(super) struct Supervisor {
    pub(super) wanted: Subscribed,
    pub(super) shelf: Arc<Shelf>,
    pub(super) signal: Signal,
    pub(super) stop: CancellationToken,
}

impl Supervisor {
    pub(super) async fn run(self, first: Session) {
        let mut backoff = Backoff::new();
        let mut session = Some(first);
        while let Some(open) = session {
            backoff.opened();
            if !self.generation(open).await {
                return;
            }
            session = self.reopen(&mut backoff).await;
        }
        self.signal.set_down("closed");
    }

    /// One generation from up to down; whether another shall follow.
    async fn generation(&self, mut session: Session) -> bool {
        self.signal.set_up();
        info!(queue = %self.wanted.queue(), "subscribed");
        let end = session.serve(&self.shelf, &self.stop).await;
        let reason = match &end {
            End::Stopped => "closed",
            End::Lost(reason) => reason,
        };
        self.signal.set_down(reason);
        self.shelf.end(session.line());
        if let End::Lost(reason) = &end {
            warn!(queue = %self.wanted.queue(), reason, "subscription lost");
        }
        session.close().await;
        matches!(end, End::Lost(_))
    }

    /// Tries until it succeeds; `None` if told to stop.
    async fn reopen(&self, backoff: &mut Backoff) -> Option<Session> {
        let trying = async {
            loop {
                sleep(backoff.pause()).await;
                match Session::open(&self.wanted).await {
                    Ok(session) => return session,
                    Err(error) => self.signal.set_down(error.to_string()),
                }
            }
        };
        self.stop.run_until_cancelled(trying).await
    }
}
