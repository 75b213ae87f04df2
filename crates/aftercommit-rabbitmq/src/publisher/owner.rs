//! The task that owns the publishing channel.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BrokerError, Destination, PublishError, Receipt, Signal};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Channel, Confirmation, Event};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::outcome::Outcome;
use crate::backoff::Backoff;
use crate::config::Config;
use crate::error::{self, PRODUCT};
use crate::link::Link;
use crate::message::Prepared;

/// How many publishes are open at once.
const OPEN: usize = 1024;
/// How long the publishes that are open when the channel ends may take to say so.
const DRAIN: Duration = Duration::from_secs(1);

/// One publish on its way to the owner.
pub(super) struct Command {
    pub(super) destination: Destination,
    pub(super) prepared: Prepared,
    pub(super) nonce: String,
    pub(super) reply: oneshot::Sender<Result<Receipt, PublishError>>,
}

type Open = FuturesUnordered<Pin<Box<dyn Future<Output = Outcome> + Send>>>;

pub(super) struct Owner {
    config: Arc<Config>,
    state: Signal,
    lane: Lane,
}

/// A connection with its one channel in confirm mode.
struct Lane {
    link: Link,
    channel: Channel,
    events: Pin<Box<dyn Stream<Item = Event> + Send + Sync>>,
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

    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut backoff = Backoff::new();
        loop {
            backoff.opened();
            let end = self.serve(&mut commands).await;
            let End::Lost(reason) = end else {
                return self.lane.close().await;
            };
            warn!(reason, "publisher lost its channel");
            self.state.set_down(reason);
            // A publish that lapin has queued would be written on the closed channel and cost the whole
            // connection: it always gets a new one.
            let Some(lane) = self.reopen(&commands, &mut backoff).await else { return };
            std::mem::replace(&mut self.lane, lane).close().await;
            self.state.set_up();
            info!("publisher is back");
        }
    }

    async fn reopen(&self, commands: &mpsc::Receiver<Command>, backoff: &mut Backoff) -> Option<Lane> {
        loop {
            sleep(backoff.pause()).await;
            if commands.is_closed() && commands.is_empty() {
                return None;
            }
            match Lane::open(&self.config).await {
                Ok(lane) => return Some(lane),
                Err(error) => self.state.set_down(error.to_string()),
            }
        }
    }

    /// Publishes and answers until the channel ends.
    async fn serve(&mut self, commands: &mut mpsc::Receiver<Command>) -> End {
        let mut open = Open::new();
        let patience = self.config.publish_deadline * 3;
        let mut moved = Instant::now();
        loop {
            let blocked = self.lane.link.connection().status().blocked();
            if !self.lane.channel.status().connected() {
                return self.lose("the channel has ended".to_owned(), open).await;
            }
            tokio::select! {
                biased;
                Some(event) = self.lane.events.next() => {
                    moved = Instant::now();
                    self.note(&event);
                }
                Some(outcome) = open.next() => {
                    moved = Instant::now();
                    if let Err(error) = &outcome.result {
                        let reason = error::reason(error);
                        open.push(std::future::ready(outcome).boxed());
                        return self.lose(reason, open).await;
                    }
                    outcome.answer(self.lane.link.seen(), false);
                }
                // While the broker blocks us, what is not written yet stays with its caller's deadline.
                command = commands.recv(), if !blocked && open.len() < OPEN => match command {
                    None => return self.finish(open).await,
                    Some(command) if command.reply.is_closed() => {}
                    Some(command) => {
                        if open.is_empty() {
                            moved = Instant::now();
                        }
                        if let Some(publish) = self.lane.publish(command) {
                            open.push(publish);
                        }
                    }
                },
                // All callers have gone long ago, and the broker owes every answer.
                () = sleep_until(moved + patience), if !blocked && !open.is_empty() => {
                    return self.lose("the broker does not answer".to_owned(), open).await;
                }
            }
        }
    }

    fn note(&self, event: &Event) {
        match event {
            Event::ConnectionBlocked(reason) => {
                warn!(reason, "the broker blocks publishers");
                self.state.set_down(format!("the broker blocks publishers: {reason}"));
            }
            Event::ConnectionUnblocked => self.state.set_up(),
            _ => {}
        }
    }

    /// Answers what was open when the channel ended.
    async fn lose(&self, reason: String, open: Open) -> End {
        let (ended, all) = collect(open).await;
        let open_at_close = ended.iter().filter(|outcome| outcome.was_open_at_close()).count();
        for outcome in ended {
            let alone = all && open_at_close == 1 && outcome.was_open_at_close();
            outcome.answer(self.lane.link.seen(), alone);
        }
        End::Lost(reason)
    }

    /// The publisher was dropped: its last publishes may still be answered to somebody.
    async fn finish(&self, open: Open) -> End {
        for outcome in collect(open).await.0 {
            outcome.answer(self.lane.link.seen(), false);
        }
        End::Closed
    }
}

/// What ends by itself, and whether that was all. The rest loses its sender, and the callers learn so.
async fn collect(mut open: Open) -> (Vec<Outcome>, bool) {
    let mut ended = Vec::new();
    let all = timeout(DRAIN, async {
        while let Some(outcome) = open.next().await {
            ended.push(outcome);
        }
    });
    let all = all.await.is_ok();
    (ended, all)
}

impl Lane {
    async fn open(config: &Config) -> Result<Self, BrokerError> {
        let link = Link::open(config, "publisher").await?;
        // Before the first publish: an event without a listener is dropped.
        let events = Box::pin(link.connection().events_listener());
        let channel = link.channel(config).await?;
        let confirm = channel.confirm_select(ConfirmSelectOptions::default());
        match timeout(config.connect_timeout, confirm).await {
            Ok(Ok(())) => Ok(Self { link, channel, events }),
            Ok(Err(error)) => Err(error::connecting(config.address(), error)),
            Err(elapsed) => {
                let (action, source) = ("turn on confirms in time", Box::new(elapsed));
                Err(BrokerError::Backend { product: PRODUCT, action, source })
            }
        }
    }

    async fn close(self) {
        self.link.close(Some(&self.channel)).await;
    }

    fn publish(&self, command: Command) -> Option<Pin<Box<dyn Future<Output = Outcome> + Send>>> {
        let Command { destination, prepared, nonce, reply } = command;
        let most = usize::try_from(self.link.connection().configuration().frame_max()).unwrap_or(usize::MAX);
        let found = prepared.header_len + 8;
        if found > most {
            let reason = format!("properties and headers need a frame of {found} bytes, the most is {most}");
            let _ = reply.send(Err(PublishError::TooLarge { destination, reason }));
            return None;
        }
        let channel = self.channel.clone();
        Some(Box::pin(async move {
            let result = send(&channel, prepared).await;
            Outcome { destination, nonce, reply, result }
        }))
    }
}

async fn send(channel: &Channel, prepared: Prepared) -> Result<Confirmation, lapin::Error> {
    let Prepared { exchange, routing_key, properties, body, header_len: _ } = prepared;
    let options = BasicPublishOptions { mandatory: true, immediate: false };
    channel.basic_publish(exchange, routing_key, options, &body, properties).await?.await
}
