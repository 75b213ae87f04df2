use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use super::Direction;
use super::shared::Shared;
use super::trigger::{Armed, Hit, Reaction, Tracks};

/// With the number of pieces under way, what latency can hold back: four megabytes.
const PIECE: usize = 64 * 1024;
const UNDER_WAY: usize = 64;

/// How one direction of a connection, or all of it, came to its end.
#[derive(Debug)]
pub(super) enum End {
    Orderly,
    Reset,
    Cut { direction: Direction, trigger: Arc<Armed> },
}

/// The faults that both directions of one connection know of.
#[derive(Debug, Default)]
pub(super) struct Faults {
    lost: AtomicBool,
    answers_swallowed: AtomicBool,
}

/// Carries the bytes of one direction.
#[derive(Debug)]
pub(super) struct Pump<'a> {
    pub(super) direction: Direction,
    pub(super) shared: &'a Shared,
    pub(super) faults: &'a Faults,
}

struct Piece {
    due: Instant,
    /// Empty at the sender's end.
    bytes: io::Result<Vec<u8>>,
}

impl Pump<'_> {
    pub(super) async fn run(self, source: ReadHalf<'_>, sink: WriteHalf<'_>) -> End {
        let (queue, pieces) = channel(UNDER_WAY);
        tokio::select! {
            never = self.read(source, queue) => match never {},
            end = self.write(pieces, sink) => end,
        }
    }

    async fn read(&self, mut source: ReadHalf<'_>, queue: Sender<Piece>) -> Infallible {
        let mut buffer = vec![0; PIECE];
        let mut open = true;
        while open {
            let read = source.read(&mut buffer).await;
            let due = Instant::now() + self.shared.latency();
            let bytes = read.map(|n| buffer[..n].to_vec());
            open = bytes.as_ref().is_ok_and(|bytes| !bytes.is_empty());
            // The receiver lives as long as this future.
            let _ = queue.send(Piece { due, bytes }).await;
        }
        std::future::pending().await
    }

    async fn write(&self, mut pieces: Receiver<Piece>, mut sink: WriteHalf<'_>) -> End {
        let mut tracks = Tracks::default();
        while let Some(Piece { due, bytes }) = pieces.recv().await {
            if due > Instant::now() {
                sleep_until(due).await;
            }
            if self.is_lost() {
                self.shared.counts.swallowed(bytes.map_or(0, |bytes| bytes.len()));
                continue;
            }
            let end = match bytes {
                Err(_) => Some(End::Reset),
                Ok(bytes) if bytes.is_empty() => Some(finish(&mut sink).await),
                Ok(bytes) => self.pass(&bytes, &mut sink, &mut tracks).await,
            };
            if let Some(end) = end {
                return end;
            }
        }
        End::Reset
    }

    /// Looked at as late as possible: nothing passes after the control has returned.
    fn is_lost(&self) -> bool {
        if self.shared.is_blackhole() {
            self.faults.lost.store(true, Ordering::Relaxed);
        }
        self.faults.lost.load(Ordering::Relaxed)
    }

    async fn pass(&self, bytes: &[u8], sink: &mut WriteHalf<'_>, tracks: &mut Tracks) -> Option<End> {
        let mut hits = self.shared.triggers.meet(self.direction, tracks, bytes);
        let cut = hits.pop_if(|hit| hit.trigger.reaction() == Reaction::Cut);
        if !hits.is_empty() {
            // Before the server can answer.
            self.faults.answers_swallowed.store(true, Ordering::Relaxed);
        }
        let forwarded = self.forward(&bytes[..cut.as_ref().map_or(bytes.len(), |hit| hit.at)], sink).await;
        for hit in hits {
            hit.trigger.happened();
        }
        match (cut, forwarded) {
            (Some(Hit { trigger, .. }), _) => Some(End::Cut { direction: self.direction, trigger }),
            (None, Err(_)) => Some(End::Reset),
            (None, Ok(())) => None,
        }
    }

    async fn forward(&self, bytes: &[u8], sink: &mut WriteHalf<'_>) -> io::Result<()> {
        let swallowed = self.direction == Direction::ToClient;
        if swallowed && self.faults.answers_swallowed.load(Ordering::Relaxed) {
            self.shared.counts.swallowed(bytes.len());
            return Ok(());
        }
        sink.write_all(bytes).await?;
        self.shared.counts.forwarded(self.direction, bytes.len());
        Ok(())
    }
}

async fn finish(sink: &mut WriteHalf<'_>) -> End {
    sink.shutdown().await.map_or(End::Reset, |()| End::Orderly)
}
