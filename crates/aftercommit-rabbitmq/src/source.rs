//! A subscription that goes on by itself.

mod session;
mod shelf;
mod supervisor;

use std::sync::Arc;

use aftercommit_core::{
    Batch, BrokerError, Capabilities, Delay, Order, Settled, Signal, Source, SourceError,
};
use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::Config;
use crate::error::PRODUCT;
use session::Session;
use supervisor::Supervisor;

pub(crate) use session::Subscribed;
pub(crate) use shelf::{Item, Shelf};

/// How many deliveries are out unsettled if nobody says.
const PREFETCH: u16 = 200;

/// The deliveries of one queue.
pub(crate) struct RabbitSource {
    shelf: Arc<Shelf>,
    signal: Signal,
    prefetch: u16,
    stop: CancellationToken,
    supervisor: JoinHandle<()>,
    _stop_on_drop: DropGuard,
}

impl RabbitSource {
    /// Subscribes, and answers with an error if that is not possible now.
    pub(crate) async fn open(
        config: Arc<Config>,
        queue: &str,
        prefetch: Option<u16>,
    ) -> Result<Self, BrokerError> {
        let prefetch = prefetch.unwrap_or(PREFETCH);
        let wanted = Subscribed::new(config, queue, prefetch)?;
        let shelf = Arc::new(Shelf::new(wanted.longest_hold()));
        let signal = Signal::new("source", "subscribing");
        let stop = CancellationToken::new();
        let first = Session::open(&wanted).await?;
        signal.set_up();
        let supervisor =
            Supervisor { wanted, shelf: Arc::clone(&shelf), signal: signal.clone(), stop: stop.clone() };
        let stop_on_drop = stop.clone().drop_guard();
        let supervisor = tokio::spawn(supervisor.run(first));
        Ok(Self { shelf, signal, prefetch, stop, supervisor, _stop_on_drop: stop_on_drop })
    }
}

#[async_trait]
impl Source for RabbitSource {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(PRODUCT, self.prefetch.into());
        capabilities.settled = Settled::Sent;
        capabilities.order = Order::PerSource;
        capabilities.says_redelivered = true;
        capabilities.delay = Delay::Held { longest: self.shelf.longest() };
        capabilities
    }

    fn health(&self) -> Signal {
        self.signal.clone()
    }

    async fn recv(&mut self, max: usize) -> Result<Batch, SourceError> {
        let items = self.shelf.take(max.max(1)).await;
        let deliveries = items.into_iter().map(|item| item.hand_out(&self.shelf)).collect();
        // The shelf answers with at least one.
        Batch::new(deliveries).ok_or(SourceError::Closed)
    }

    async fn close(self: Box<Self>) -> Result<(), SourceError> {
        self.stop.cancel();
        self.supervisor.await.map_err(|error| SourceError::Backend {
            what: "its supervisor".to_owned(),
            source: Some(Box::new(error)),
        })
    }
}
