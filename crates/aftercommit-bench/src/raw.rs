//! The yardsticks: what somebody writes by hand on lapin and sqlx, without any of our crates, with
//! the same SQL per message in the same order at the same concurrency and prefetch.
//!
//! They are written to be fast, not to survive: an error ends them, a lost connection is not
//! mended, nothing is retried or parked, nobody is told how they are.

mod batch;
mod single;
mod sql;

use std::sync::Arc;

use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::error::Result;
use crate::meter::Meter;
pub use sql::Safety;

/// The consumer's name in the inbox.
pub const CONSUMER: &str = "bench";

/// How much happens at once.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Database connections, each with one transaction at a time.
    pub connections: usize,
    /// Unsettled messages at most.
    pub prefetch: u16,
    /// Messages of one transaction at most.
    pub batch: usize,
}

/// A loop that runs.
#[derive(Debug)]
pub struct Loop {
    workers: JoinSet<Result<()>>,
    connection: Connection,
    // Without it the last worker's end would close the channel while the connection is being closed.
    _channel: Channel,
}

struct Worker {
    database: PgConnection,
    deliveries: Arc<Mutex<lapin::Consumer>>,
    meter: Arc<Meter>,
    safety: Safety,
}

/// Starts the loop on a queue. The tables are made in the first schema of the search path.
///
/// # Errors
/// When a server cannot be reached or refuses.
///
/// # Cancel safety
/// A dropped future has consumed nothing.
pub async fn start(
    postgres: &PgConnectOptions,
    amqp: &str,
    queue: &str,
    shape: Shape,
    safety: Safety,
    meter: &Arc<Meter>,
) -> Result<Loop> {
    sqlx::raw_sql(sql::TABLE).execute(&mut PgConnection::connect_with(postgres).await?).await?;
    let mut databases = Vec::with_capacity(shape.connections);
    for _ in 0..shape.connections {
        databases.push(PgConnection::connect_with(postgres).await?);
    }
    let connection = Connection::connect(amqp, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.basic_qos(shape.prefetch, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await?;
    let deliveries = Arc::new(Mutex::new(consumer));
    let mut workers = JoinSet::new();
    for database in databases {
        let (deliveries, meter) = (Arc::clone(&deliveries), Arc::clone(meter));
        let worker = Worker { database, deliveries, meter, safety };
        if shape.batch > 1 {
            workers.spawn(worker.batches(shape.batch));
        } else {
            workers.spawn(worker.singles());
        }
    }
    Ok(Loop { workers, connection, _channel: channel })
}

impl Loop {
    /// Waits for its workers, which end with the last message or with an error.
    ///
    /// # Errors
    /// The first error of a worker.
    ///
    /// # Cancel safety
    /// A dropped future ends the workers where they are.
    pub async fn stop(mut self) -> Result<()> {
        while let Some(ended) = self.workers.join_next().await {
            ended??;
        }
        self.connection.close(200, "closed".into()).await?;
        Ok(())
    }
}

impl Worker {
    /// At least one delivery and what else is there at once, up to `max`; none at the end.
    async fn receive(&self, max: usize) -> Result<Vec<Delivery>> {
        let receiving = async {
            let mut deliveries = self.deliveries.lock().await;
            let mut received: Vec<_> = deliveries.next().await.into_iter().collect();
            while received.len() < max
                && let Some(more) = futures_util::FutureExt::now_or_never(deliveries.next())
            {
                received.extend(more);
            }
            received
        };
        let Some(received) = self.meter.done().run_until_cancelled(receiving).await else {
            return Ok(Vec::new());
        };
        self.meter.received();
        received.into_iter().map(|delivery| Ok(delivery?)).collect()
    }
}
