use rustix::process::Signal;

use super::server::Server;
use super::url_at;
use crate::error::Result;
use crate::ports::{Reserved, reserve};
use crate::services::private::{self, Keeper};
use crate::wait::SILENT;

/// How a private PostgreSQL is set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeOptions<'a> {
    /// Lines for postgresql.conf; they win over the defaults (`fsync` and `synchronous_commit` are on).
    pub extra_config: &'a str,
}

/// How PostgreSQL is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Transactions are rolled back, sessions are ended, everything is written.
    Fast,
    /// As a crash with tidying up: the next start recovers.
    Immediate,
}

/// A PostgreSQL server for one test: own port, own folder. Dropping it, or the death of the test, removes it.
///
/// It listens on 127.0.0.1 and trusts everybody; superuser and database are called `aftercommit`.
#[derive(Debug)]
pub struct Node {
    server: Server,
    // Dropped in this order: the port stays ours until the server is gone.
    _keeper: Keeper,
    _port: Reserved,
}

impl Node {
    /// Starts one and waits until it answers a query.
    ///
    /// # Errors
    ///
    /// When PostgreSQL is not installed or does not get ready (with the end of its log).
    pub fn start(options: NodeOptions<'_>) -> Result<Self> {
        let port = reserve()?;
        let folder = private::folder("postgres")?;
        let keeper = Keeper::over(&folder, "QUIT")?;
        let server = Server { folder, port: port.get(), config: config(options) };
        server.start(SILENT)?;
        Ok(Self { server, _keeper: keeper, _port: port })
    }

    /// `postgres://aftercommit@127.0.0.1:PORT/aftercommit`
    #[must_use]
    pub fn url(&self) -> String {
        url_at(self.server.port)
    }

    /// The port, which stays the same over restarts.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.server.port
    }

    /// The server's process (the postmaster), `None` while it does not run.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.server.process().map(|p| p.pid())
    }

    /// Stops it and waits for its end.
    ///
    /// # Errors
    ///
    /// When the process cannot be signalled or does not end.
    pub fn stop(&self, how: Shutdown) -> Result<()> {
        self.server.stop(match how {
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        })
    }

    /// Kills the server with all its sessions, as a power cut would (except that the disk keeps what it was given).
    ///
    /// # Errors
    ///
    /// When a process cannot be signalled or does not end.
    pub fn kill(&self) -> Result<()> {
        self.server.kill()
    }

    /// Starts it again on the same data and port, and waits until it answers a query.
    ///
    /// # Errors
    ///
    /// When it does not get ready.
    pub fn start_again(&self) -> Result<()> {
        self.server.start(SILENT)
    }

    /// [`stop`](Self::stop), then [`start_again`](Self::start_again).
    ///
    /// # Errors
    ///
    /// As those two.
    pub fn restart(&self, how: Shutdown) -> Result<()> {
        self.stop(how)?;
        self.start_again()
    }

    /// Replaces the extra lines of postgresql.conf; they count from the next start on.
    pub fn configure(&mut self, options: NodeOptions<'_>) {
        self.server.config = config(options);
    }

    /// Runs SQL with `psql` as superuser and returns bare rows, columns separated by `|`.
    ///
    /// # Errors
    ///
    /// What psql printed.
    pub fn sql(&self, sql: &str) -> Result<String> {
        self.server.query("aftercommit", sql)
    }
}

fn config(options: NodeOptions<'_>) -> String {
    // In files, so that a killed node leaves nothing in /dev/shm.
    format!(
        "max_connections = 100\nshared_buffers = 32MB\ndynamic_shared_memory_type = mmap\n{}",
        options.extra_config
    )
}
