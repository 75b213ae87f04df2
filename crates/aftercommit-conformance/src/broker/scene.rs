//! What nearly every trial does: connect, declare, publish, take, look.

use std::future::Future;
use std::sync::Arc;

use aftercommit_core::{
    BoxError, Broker, Delivery, Destination, Message, Outgoing, Publisher, Receipt, Settled, Signal, Source,
    Subscription,
};

use super::stage::{Depth, Stage};

/// Fails the trial unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}
pub(crate) use ensure;

/// One consumer with its source declared, and a publisher on the same connection.
pub(crate) struct Scene {
    pub(crate) stage: Arc<dyn Stage>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) subscription: Subscription,
    pub(crate) to: Destination,
}

impl Scene {
    pub(crate) async fn open(stage: Arc<dyn Stage>) -> Result<Self, BoxError> {
        Self::with_prefetch(stage, 20).await
    }

    pub(crate) async fn with_prefetch(stage: Arc<dyn Stage>, prefetch: u16) -> Result<Self, BoxError> {
        let broker = stage.connect().await?;
        let subscription = stage.subscription("first", "topic")?.with_prefetch(prefetch)?;
        broker.declare(&subscription).await?;
        let publisher = Arc::from(broker.publisher().await?);
        let to = stage.destination("topic");
        Ok(Self { stage, broker, publisher, subscription, to })
    }

    pub(crate) async fn source(&self) -> Result<Box<dyn Source>, BoxError> {
        let source = self.broker.source(&self.subscription).await?;
        self.until_up(&source.health()).await?;
        Ok(source)
    }

    /// Waits for something that must happen.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        future: impl Future<Output = T> + Send,
    ) -> Result<T, BoxError> {
        let patience = self.stage.patience();
        match tokio::time::timeout(patience, future).await {
            Ok(found) => Ok(found),
            Err(_) => Err(format!("waited {patience:?} in vain: {what}").into()),
        }
    }

    pub(crate) async fn send(&self, message: Message) -> Result<Receipt, BoxError> {
        let sent = self.publisher.publish(Outgoing::new(self.to.clone(), message));
        Ok(self.within("the answer to a publish", sent).await??)
    }

    /// Publishes `0`, `1`, … one after the other.
    pub(crate) async fn send_numbers(&self, numbers: std::ops::Range<u32>) -> Result<(), BoxError> {
        for number in numbers {
            self.send(Message::new(number.to_string())).await?;
        }
        Ok(())
    }

    /// Takes exactly so many deliveries.
    pub(crate) async fn take(
        &self,
        source: &mut Box<dyn Source>,
        count: usize,
    ) -> Result<Vec<Delivery>, BoxError> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let what = format!("delivery {} of {count}", taken.len() + 1);
            taken.extend(self.within(&what, source.recv(count - taken.len())).await??);
        }
        ensure!(taken.len() == count, "{} deliveries although {count} were asked for", taken.len());
        Ok(taken)
    }

    pub(crate) async fn take_one(&self, source: &mut Box<dyn Source>) -> Result<Delivery, BoxError> {
        self.take(source, 1).await?.pop().ok_or_else(|| "an empty batch".into())
    }

    /// Takes and acknowledges exactly so many, and answers their bodies in the order of arrival.
    pub(crate) async fn consume(
        &self,
        source: &mut Box<dyn Source>,
        count: usize,
    ) -> Result<Vec<String>, BoxError> {
        let mut bodies = Vec::new();
        while bodies.len() < count {
            let delivery = self.take_one(source).await?;
            bodies.push(body(&delivery));
            ack(delivery).await?;
        }
        Ok(bodies)
    }

    /// Fails if anything comes within the quiet time.
    pub(crate) async fn nothing_comes(&self, source: &mut Box<dyn Source>) -> Result<(), BoxError> {
        match tokio::time::timeout(self.stage.quiet(), source.recv(1)).await {
            Err(_) => Ok(()),
            Ok(Ok(batch)) => {
                let bodies: Vec<_> = batch.into_iter().map(|delivery| body(&delivery)).collect();
                Err(format!("nothing should have come, but {bodies:?} did").into())
            }
            Ok(Err(error)) => Err(error.into()),
        }
    }

    pub(crate) async fn depth(&self) -> Result<Depth, BoxError> {
        self.stage.depth(&self.subscription).await
    }

    /// Waits until the source holds so many messages, settled ones not counted.
    pub(crate) async fn until_total(&self, total: u64) -> Result<(), BoxError> {
        let mut last = Depth::default();
        let reached = tokio::time::timeout(self.stage.patience(), async {
            loop {
                last = self.depth().await?;
                if last.total() == total {
                    return Ok::<_, BoxError>(());
                }
                pause().await;
            }
        });
        match reached.await {
            Ok(result) => result,
            Err(_) => Err(format!("the source holds {last:?}, and it should be {total} in all").into()),
        }
    }

    /// Closes the source and fails unless it then holds exactly so many messages.
    pub(crate) async fn close_with(&self, source: Box<dyn Source>, total: u64) -> Result<(), BoxError> {
        self.close(source).await?;
        self.until_total(total).await
    }

    pub(crate) async fn close(&self, source: Box<dyn Source>) -> Result<(), BoxError> {
        Ok(self.within("close", source.close()).await??)
    }

    pub(crate) async fn until_up(&self, health: &Signal) -> Result<(), BoxError> {
        self.within("health is up", until(|| health.is_up())).await
    }

    pub(crate) async fn until_down(&self, health: &Signal) -> Result<(), BoxError> {
        self.within("health is down", until(|| !health.is_up())).await
    }
}

/// Looks until the condition holds. To be bounded by the caller.
pub(crate) async fn until(holds: impl Fn() -> bool + Send) {
    while !holds() {
        pause().await;
    }
}

/// Between two looks at something that nobody announces.
pub(crate) async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
}

/// The body as text, for messages of trials.
pub(crate) fn body(delivery: &Delivery) -> String {
    delivery.message.body.as_deref().map_or_else(
        || "(absent)".to_owned(),
        |body| String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned(),
    )
}

/// Acknowledges. The suite is the one place beside the inbox's evidence that may.
#[expect(clippy::disallowed_methods, reason = "the suite tests ack itself")]
pub(crate) async fn ack(delivery: Delivery) -> Result<Settled, aftercommit_core::SettleError> {
    delivery.into_acker().ack().await
}

/// The numbers `from..to` as the bodies that [`Scene::send_numbers`] sends.
pub(crate) fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}
