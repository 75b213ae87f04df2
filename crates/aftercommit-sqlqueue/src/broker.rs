use std::sync::Arc;

use aftercommit_core::{Broker, BrokerError, Destination, Finding, Publisher, Source, Subscription};
use async_trait::async_trait;

use crate::config::Config;
use crate::error::PRODUCT;
use crate::file::File;
use crate::publisher::QueuePublisher;
use crate::source::QueueSource;
use crate::table::{self, Declare, Depth};
use crate::topology;

/// A queue in an SQLite file, opened with one configuration.
#[derive(Clone, Debug)]
pub struct SqlQueue {
    config: Arc<Config>,
    file: Arc<File>,
}

/// Opens the queue's file, and makes it and its tables where they are missing. Any number of processes may do so at once.
///
/// # Errors
/// [`BrokerError::Unreachable`] when the file cannot be opened or is locked, [`BrokerError::Denied`] when it or its folder
/// is read-only, [`BrokerError::Topology`] when it is damaged or of a newer version. Each names the path and what to do.
///
/// # Cancel safety
/// A dropped future may have made the file.
pub async fn connect(config: Config) -> Result<Arc<dyn Broker>, BrokerError> {
    Ok(Arc::new(SqlQueue::connect(config).await?))
}

impl SqlQueue {
    /// As [`connect`], with the concrete type.
    ///
    /// # Errors
    /// As [`connect`].
    ///
    /// # Cancel safety
    /// As [`connect`].
    pub async fn connect(config: Config) -> Result<Self, BrokerError> {
        let file = File::open(&config).await?;
        Ok(Self { config: Arc::new(config), file })
    }

    /// What is in a queue now, for tests and tools.
    ///
    /// # Errors
    /// [`BrokerError::Topology`] when there is no such queue, otherwise as [`connect`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn depth(&self, queue: &str) -> Result<Depth, BrokerError> {
        let name = queue.to_owned();
        let depth =
            self.file.read(move |conn| Box::pin(async move { table::depth(conn, &name).await })).await?;
        depth.ok_or_else(|| missing(queue))
    }

    async fn open(&self, queue: &str, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        let name = queue.to_owned();
        let sight =
            self.file.read(move |conn| Box::pin(async move { table::look(conn, &name).await })).await?;
        sight.ok_or_else(|| missing(queue))?;
        let (file, config) = (Arc::clone(&self.file), &self.config);
        Ok(Box::new(QueueSource::open(file, config, queue, subscription.prefetch)))
    }
}

fn missing(queue: &str) -> BrokerError {
    BrokerError::Topology {
        place: format!("queue {queue}"),
        reason: "it does not exist; declare the subscription".to_owned(),
        source: None,
    }
}

#[async_trait]
impl Broker for SqlQueue {
    fn product(&self) -> &'static str {
        PRODUCT
    }

    async fn declare(&self, subscription: &Subscription) -> Result<(), BrokerError> {
        let declare = Declare {
            source: subscription.source.clone(),
            dead_letters: topology::dead_letter_queue(subscription),
            bindings: subscription.bindings.clone(),
        };
        Ok(self.file.write(declare).await?)
    }

    async fn check(&self, subscription: &Subscription) -> Result<Vec<Finding>, BrokerError> {
        let wanted = subscription.clone();
        let found =
            self.file.read(move |conn| Box::pin(async move { table::found(conn, &wanted).await })).await?;
        Ok(topology::findings(subscription, &found))
    }

    async fn source(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        self.open(&subscription.source, subscription).await
    }

    async fn publisher(&self) -> Result<Box<dyn Publisher>, BrokerError> {
        // Whether the file is there at all; it is written for the first time by a publish.
        self.file.read(|conn| Box::pin(async move { table::version(conn).await })).await?;
        Ok(Box::new(QueuePublisher::new(Arc::clone(&self.file), &self.config)))
    }

    fn dead_letter(&self, subscription: &Subscription) -> Destination {
        topology::dead_letter(subscription)
    }

    async fn dead_letters(&self, subscription: &Subscription) -> Result<Box<dyn Source>, BrokerError> {
        self.open(&topology::dead_letter_queue(subscription), subscription).await
    }
}
