use rustix::process::Signal;

use super::depths::Depths;
use super::server::{Ports, Server};
use super::{amqp_url_at, management_url_at};
use crate::error::Result;
use crate::ports::{Reserved, reserve};
use crate::services::private::{self, Keeper};
use crate::wait::SILENT;

/// How a private RabbitMQ is set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeOptions<'a> {
    /// Lines for rabbitmq.conf. Ports for further listeners (TLS) come from [`crate::ports::reserve`].
    pub extra_config: &'a str,
}

/// A RabbitMQ node for one test: own ports, own folder, own epmd, management enabled, user guest with password guest.
/// Dropping it, or the death of the test, removes it with its epmd.
///
/// A start takes about ten seconds: use one node for several tests where they do not disturb each other.
#[derive(Debug)]
pub struct Node {
    server: Server,
    // Dropped in this order: the ports stay ours until the node is gone.
    _keeper: Keeper,
    _ports: [Reserved; 4],
}

impl Node {
    /// Starts one and waits until it answers AMQP and management requests.
    ///
    /// # Errors
    ///
    /// When RabbitMQ is not installed or does not get ready (with the end of its log).
    pub fn start(options: NodeOptions<'_>) -> Result<Self> {
        let reserved = [reserve()?, reserve()?, reserve()?, reserve()?];
        let [amqp, management, distribution, epmd] = [0, 1, 2, 3].map(|n: usize| reserved[n].get());
        let ports = Ports { amqp, management, distribution, epmd };
        let folder = private::folder("rabbitmq")?;
        let keeper = Keeper::over(&folder, "KILL")?;
        let server = Server { folder, ports, config: options.extra_config.to_owned() };
        server.start(SILENT)?;
        Ok(Self { server, _keeper: keeper, _ports: reserved })
    }

    /// `amqp://guest:guest@127.0.0.1:PORT/%2f`
    #[must_use]
    pub fn amqp_url(&self) -> String {
        amqp_url_at(self.server.ports.amqp)
    }

    /// The port of AMQP, which stays the same over restarts.
    #[must_use]
    pub const fn amqp_port(&self) -> u16 {
        self.server.ports.amqp
    }

    /// `http://guest:guest@127.0.0.1:PORT`, without a path.
    #[must_use]
    pub fn management_url(&self) -> String {
        management_url_at(self.server.ports.management)
    }

    /// The broker's process, `None` while it does not run.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.server.process().map(|p| p.pid())
    }

    /// Stops it gracefully and waits for its end.
    ///
    /// # Errors
    ///
    /// When the process cannot be signalled or does not end.
    pub fn stop(&self) -> Result<()> {
        self.server.stop(Signal::TERM)
    }

    /// Kills it hard.
    ///
    /// # Errors
    ///
    /// When the process cannot be signalled or does not end.
    pub fn kill(&self) -> Result<()> {
        self.server.stop(Signal::KILL)
    }

    /// Starts it again on the same data and ports, and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it does not get ready.
    pub fn start_again(&self) -> Result<()> {
        self.server.start(SILENT)
    }

    /// Replaces the extra lines of rabbitmq.conf; they count from the next start on.
    pub fn configure(&mut self, options: NodeOptions<'_>) {
        options.extra_config.clone_into(&mut self.server.config);
    }

    /// Runs `rabbitmqctl` against this node and returns what it printed.
    ///
    /// # Errors
    ///
    /// What it printed, when it fails.
    pub fn ctl(&self, args: &[&str]) -> Result<String> {
        self.server.ctl(args)
    }

    /// A way to see what is in the queues.
    ///
    /// # Errors
    ///
    /// When there is no Erlang.
    pub fn depths(&self) -> Result<Depths> {
        Depths::of_node(&self.server)
    }
}
