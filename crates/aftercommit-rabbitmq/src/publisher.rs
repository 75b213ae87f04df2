//! Publishing with a positive answer.

mod lane;
mod outcome;
mod owner;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aftercommit_core::{BrokerError, Destination, Outgoing, PublishError, Publisher, Receipt, Signal};
use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::config::Config;
use crate::message::prepare;
use owner::{Command, Owner};

/// How many publishes wait for the owner before callers do.
const WAITING: usize = 64;

/// One connection and channel with confirms, owned by one task.
pub(crate) struct RabbitPublisher {
    config: Arc<Config>,
    commands: mpsc::Sender<Command>,
    state: Signal,
    nonces: Nonces,
}

impl RabbitPublisher {
    pub(crate) async fn open(config: Arc<Config>) -> Result<Self, BrokerError> {
        let state = Signal::new("rabbitmq publisher", "connecting");
        let (commands, inbox) = mpsc::channel(WAITING);
        let owner = Owner::open(Arc::clone(&config), state.clone()).await?;
        // It ends with the last sender of commands, which is this publisher.
        tokio::spawn(owner.run(inbox));
        Ok(Self { config, commands, state, nonces: Nonces::new() })
    }

    async fn ask(&self, command: Command, answer: Answer) -> Result<Receipt, PublishError> {
        let destination = command.destination.clone();
        let asking = async {
            self.commands.send(command).await.ok()?;
            answer.await.ok()
        };
        let unknown = |reason| PublishError::Unknown { destination, reason, source: None };
        match timeout(self.config.publish_deadline, asking).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(unknown("the channel ended before the answer".to_owned())),
            Err(_) => {
                let why = self.state.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
                Err(unknown(format!("no answer within {:?}{why}", self.config.publish_deadline)))
            }
        }
    }
}

type Answer = oneshot::Receiver<Result<Receipt, PublishError>>;

#[async_trait]
impl Publisher for RabbitPublisher {
    async fn publish(&self, message: Outgoing) -> Result<Receipt, PublishError> {
        let found = message.message.body.as_ref().map_or(0, bytes::Bytes::len);
        let most = self.config.max_message_size;
        if found > most {
            let reason = format!("the body has {found} bytes, the most is {most}");
            return Err(PublishError::TooLarge { destination: message.destination, reason });
        }
        let nonce = self.nonces.next();
        let prepared = match prepare(&message, &nonce) {
            Ok(prepared) => prepared,
            Err(unsendable) => return Err(refused(message.destination, unsendable.to_string())),
        };
        let (reply, answer) = oneshot::channel();
        self.ask(Command { destination: message.destination, prepared, nonce, reply }, answer).await
    }
}

const fn refused(destination: Destination, reason: String) -> PublishError {
    PublishError::Refused { destination, reason, later: false }
}

/// Names for publishes that nobody else can have chosen.
struct Nonces {
    prefix: u64,
    next: AtomicU64,
}

impl Nonces {
    fn new() -> Self {
        Self { prefix: rand::random(), next: AtomicU64::new(0) }
    }

    fn next(&self) -> String {
        format!("{:016x}-{:x}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed))
    }
}
