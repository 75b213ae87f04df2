use std::time::Instant;

use aftercommit::{Broker, Outgoing, connect};
use futures_util::StreamExt;

use super::journal::Journal;
use crate::LabError;
use crate::order::Order;
use crate::site::Site;

/// Publishes orders in their order and waits for every answer.
pub(super) async fn run(
    site: &Site,
    sends: Vec<Order>,
    at_once: usize,
    stop: impl Future<Output = ()>,
) -> Result<(), LabError> {
    let broker = connect(&site.broker).await.map_err(LabError::doing("connecting the producer"))?;
    tokio::select! {
        published = publish(&*broker, site, sends, at_once) => published,
        () = stop => Err(LabError::Interrupted),
    }
}

async fn publish(
    broker: &dyn Broker,
    site: &Site,
    sends: Vec<Order>,
    at_once: usize,
) -> Result<(), LabError> {
    let journal = Journal::new(site, None);
    let publisher = broker.publisher().await.map_err(LabError::doing("opening a publisher"))?;
    let send = |order: Order| {
        let (message, since) = (order.message(), Instant::now());
        let sending = publisher.publish(Outgoing::new(site.route(), message.clone()));
        async move { sending.await.map(|_| (message, since)) }
    };
    let mut answers = futures_util::stream::iter(sends).map(send).buffered(at_once.max(1));
    while let Some(answer) = answers.next().await {
        let (message, since) = answer.map_err(LabError::doing("publishing an order"))?;
        journal.confirmed(&message, since);
    }
    Ok(())
}
