//! A TCP proxy that breaks connections on command, to put between a client and a real server.
//!
//! ```no_run
//! use std::net::{Ipv4Addr, SocketAddr};
//! use aftercommit_conformance::proxy::{Direction, Pattern, Proxy};
//!
//! # async fn example() -> std::io::Result<()> {
//! let proxy = Proxy::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 5432)))?;
//! // The server commits, the client never learns of it: `C`, length, tag is PostgreSQL's answer to COMMIT.
//! let lost = proxy.cut_before(Direction::ToClient, Pattern::bytes(*b"C\0\0\0\x0bCOMMIT\0"));
//! // … let a client work through proxy.addr() …
//! lost.fired().await;
//! # Ok(()) }
//! ```
//!
//! It runs on a thread of its own with a clock of its own: controls work from any thread and any runtime (also with
//! tokio's time paused), and each has taken effect when it returns. Encrypted connections can be cut, but patterns
//! do not see what is inside.

mod connection;
mod counts;
mod engine;
mod listener;
mod pattern;
mod pump;
mod shared;
mod socket;
#[cfg(test)]
mod tests;
mod trigger;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

pub use self::counts::Counts;
pub use self::pattern::Pattern;
pub use self::trigger::Trigger;

use self::engine::{Command, Order};
use self::shared::Shared;
use self::trigger::{Armed, Condition, Reaction};

/// Which way bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// A running proxy before one server. Dropping it resets its connections and frees its port.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    orders: Option<UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and forwards each connection to `upstream`, which need not run yet:
    /// a client that comes while the server is away is accepted and reset.
    ///
    /// # Errors
    ///
    /// When no port or thread can be had.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (orders, inbox) = tokio::sync::mpsc::unbounded_channel();
        let (addr, thread) = engine::start(upstream, Arc::clone(&shared), inbox)?;
        Ok(Self { addr, shared, orders: Some(orders), thread: Some(thread) })
    }

    /// Where clients connect to instead of the server.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Resets all current connections on both sides. New ones are accepted.
    pub fn cut(&self) {
        // Only `accept` can fail.
        let _ = self.order(Command::Cut);
    }

    /// Refuses new connections as a server that is down does. Existing ones stay; for an outage, `cut` as well.
    pub fn refuse(&self) {
        let _ = self.order(Command::Refuse);
    }

    /// Ends [`refuse`](Self::refuse), on the same port.
    ///
    /// # Errors
    ///
    /// When the system does not let it listen any more.
    pub fn accept(&self) -> io::Result<()> {
        self.order(Command::Accept)
    }

    /// Loses everything both ways, and keeps all sockets open, new ones too, even when one side closes its own.
    ///
    /// A connection that lost bytes never forwards again: its stream would go on with a gap, which TCP never shows.
    pub fn blackhole(&self) {
        let _ = self.order(Command::Blackhole(true));
    }

    /// Ends [`blackhole`](Self::blackhole) for new connections and for those that lost nothing.
    pub fn end_blackhole(&self) {
        let _ = self.order(Command::Blackhole(false));
    }

    /// Delays all bytes that arrive from now on by `each_way`, in both directions, without limiting the throughput
    /// (beyond four megabytes under way). Zero ends it. Milliseconds are the finest step.
    pub fn latency(&self, each_way: Duration) {
        let _ = self.order(Command::Latency(each_way));
    }

    /// Cuts one connection once `n` bytes went in `direction` on it, counted from now or from its start, if later.
    ///
    /// The receiver gets exactly these and then an orderly end; the sender is reset. With 0 not even the first byte
    /// passes. Triggers fire once: the next connection lives.
    pub fn cut_after_bytes(&self, direction: Direction, n: u64) -> Trigger {
        self.arm(direction, Condition::Bytes(n), Reaction::Cut)
    }

    /// Cuts the first connection on which `pattern` comes by, before it passes: the receiver gets what came before
    /// the match and then an orderly end; the sender is reset.
    ///
    /// When a match arrives in pieces, its beginning may have passed already.
    pub fn cut_before(&self, direction: Direction, pattern: Pattern) -> Trigger {
        self.arm(direction, Condition::Before(pattern), Reaction::Cut)
    }

    /// Cuts the first connection on which `pattern` comes by, right behind it: the receiver surely gets the match
    /// and then an orderly end; the sender is reset and gets no answer.
    pub fn cut_after(&self, direction: Direction, pattern: Pattern) -> Trigger {
        self.arm(direction, Condition::After(pattern), Reaction::Cut)
    }

    /// On the first connection on which `pattern` goes to the server, no more bytes reach the client, while the
    /// server gets everything. It stays so until [`cut`](Self::cut).
    pub fn swallow_answers_after(&self, pattern: Pattern) -> Trigger {
        self.arm(Direction::ToServer, Condition::After(pattern), Reaction::SwallowAnswers)
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counts.now()
    }

    /// Waits until the counts are as asked, and returns them.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn wait_until(&self, condition: impl FnMut(&Counts) -> bool) -> Counts {
        self.shared.counts.wait_until(condition).await
    }

    fn arm(&self, direction: Direction, condition: Condition, reaction: Reaction) -> Trigger {
        let armed = Arc::new(Armed::new(direction, condition, reaction));
        self.shared.triggers.add(Arc::clone(&armed));
        Trigger::new(armed)
    }

    /// Waits for the answer, which takes the other thread microseconds.
    fn order(&self, command: Command) -> io::Result<()> {
        let (answer, answered) = mpsc::sync_channel(1);
        let order = Order { command, answer };
        self.orders.as_ref().and_then(|orders| orders.send(order).ok()).ok_or_else(ended)?;
        answered.recv().map_err(|_| ended())?
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic over there has been printed by its own thread.
            let _ = thread.join();
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the proxy's thread has ended")
}
