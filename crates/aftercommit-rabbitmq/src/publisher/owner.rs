//! The task that owns the publishing channel.

use std::sync::Arc;

use aftercommit_core::{BrokerError, Destination, PublishError, Receipt, Signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::lane::Lane;
use crate::backoff::Backoff;
use crate::config::Config;
use crate::message::Prepared;

/// How many publishes are open at once.
const OPEN: usize = 1024;

/// One publish on its way to the owner.
pub(super) struct Command {
    pub(super) destination: Destination,
    pub(super) prepared: Prepared,
    pub(super) nonce: String,
    pub(super) reply: oneshot::Sender<Result<Receipt, PublishError>>,
}

impl Command {
    /// Answers a publish that was not sent.
    pub(super) fn fail(self, error: impl FnOnce(Destination) -> PublishError) {
        // A caller whose deadline has passed does not listen any more.
        let _ = self.reply.send(Err(error(self.destination)));
    }
}

pub(super) struct Owner {
    config: Arc<Config>,
    state: Signal,
    lane: Lane,
}

enum End {
    /// Nobody can publish any more.
    Closed,
    Lost(String),
}

impl Owner {
    pub(super) async fn open(config: Arc<Config>, state: Signal) -> Result<Self, BrokerError> {
        let lane = Lane::open(&config).await?;
        state.set_up();
        Ok(Self { config, state, lane })
    }

    /// Serves until the last publisher is dropped, on one lane after the other.
    pub(super) async fn run(self, mut commands: mpsc::Receiver<Command>) {
        let Self { config, state, mut lane } = self;
        let mut backoff = Backoff::new();
        loop {
            backoff.opened();
            let end = serve(&mut lane, &mut commands, &config, &state).await;
            lane.end().await;
            let End::Lost(reason) = end else { return };
            warn!(reason, "publisher lost its channel");
            state.set_down(reason);
            let Some(next) = reopen(&config, &state, &commands, &mut backoff).await else { return };
            lane = next;
            state.set_up();
            info!("publisher is back");
        }
    }
}

async fn reopen(
    config: &Arc<Config>,
    state: &Signal,
    commands: &mpsc::Receiver<Command>,
    backoff: &mut Backoff,
) -> Option<Lane> {
    loop {
        sleep(backoff.pause()).await;
        if commands.is_closed() && commands.is_empty() {
            return None;
        }
        match Lane::open(config).await {
            Ok(lane) => return Some(lane),
            Err(error) => state.set_down(error.to_string()),
        }
    }
}

/// Publishes and answers until the channel ends.
async fn serve(
    lane: &mut Lane,
    commands: &mut mpsc::Receiver<Command>,
    config: &Config,
    state: &Signal,
) -> End {
    let patience = config.publish_deadline * 3;
    let mut moved = Instant::now();
    loop {
        let (blocked, open) = (lane.is_blocked(), lane.open_count());
        if !lane.is_connected() {
            return End::Lost("the channel has ended".to_owned());
        }
        tokio::select! {
            biased;
            step = lane.step(state) => {
                moved = Instant::now();
                if let Err(reason) = step {
                    return End::Lost(reason);
                }
            }
            // While the broker blocks us, what is not written yet stays with its caller's deadline.
            command = commands.recv(), if !blocked && open < OPEN => {
                let Some(command) = command else { return End::Closed };
                if open == 0 {
                    moved = Instant::now();
                }
                if !command.reply.is_closed() {
                    lane.take(command);
                }
            }
            // All callers have gone long ago, and the broker owes every answer.
            () = sleep_until(moved + patience), if !blocked && open > 0 => {
                return End::Lost("the broker does not answer".to_owned());
            }
        }
    }
}
