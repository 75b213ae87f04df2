//! Publishing: a row for each queue, synced to the disk before the answer.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{Destination, Outgoing, PublishError, Publisher, Receipt};
use async_trait::async_trait;

use crate::config::Config;
use crate::error::unanswered;
use crate::file::File;
use crate::message::{Envelope, TooDeep};
use crate::table::{Publish, Routed};

pub(crate) struct QueuePublisher {
    file: Arc<File>,
    deadline: Duration,
    max_message_size: usize,
}

impl QueuePublisher {
    pub(crate) fn new(file: Arc<File>, config: &Config) -> Self {
        Self { file, deadline: config.publish_deadline, max_message_size: config.max_message_size }
    }

    fn envelope(&self, destination: &Destination, outgoing: Outgoing) -> Result<Envelope, PublishError> {
        let destination = || destination.clone();
        let envelope = Envelope::new(outgoing.message).map_err(|TooDeep| PublishError::Refused {
            destination: destination(),
            reason: "its headers are nested too deep".to_owned(),
            later: false,
        })?;
        let (size, most) = (envelope.size(), self.max_message_size);
        if size > most {
            let reason = format!("{size} bytes with its headers, the most is {most}");
            return Err(PublishError::TooLarge { destination: destination(), reason });
        }
        Ok(envelope)
    }
}

#[async_trait]
impl Publisher for QueuePublisher {
    async fn publish(&self, message: Outgoing) -> Result<Receipt, PublishError> {
        let destination = message.destination.clone();
        let envelope = self.envelope(&destination, message)?;
        let exchange = destination.name.clone();
        let write =
            self.file.write(Publish { exchange, routing_key: destination.routing_key.clone(), envelope });
        match tokio::time::timeout(self.deadline, write).await {
            Ok(Ok(Routed::Kept(position))) => Ok(Receipt::new(destination, Some(position.to_string()))),
            Ok(Ok(Routed::NoRoute)) => Err(PublishError::Unroutable { destination }),
            Ok(Ok(Routed::NoExchange)) => {
                let reason = "there is no such exchange".to_owned();
                Err(PublishError::Refused { destination, reason, later: true })
            }
            Ok(Err(error)) => Err(unanswered(destination, error)),
            Err(_) => {
                let path = self.file.path().display();
                let reason = format!(
                    "the queue file {path} was not written within {:?}: another process may hold its write lock",
                    self.deadline
                );
                Err(PublishError::Unknown { destination, reason, source: None })
            }
        }
    }
}
