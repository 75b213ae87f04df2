//! One connection and channel in confirm mode, and what is open on it.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BrokerError, PublishError, Signal};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Confirmation, Event, ExchangeKind};
use tokio::time::timeout;
use tracing::warn;

use super::outcome::{Confirm, Outcome};
use super::owner::Command;
use crate::config::Config;
use crate::error::{self, PRODUCT, code, reply_code};
use crate::link::Link;
use crate::message::Prepared;

/// How long the publishes that are open when the channel ends may take to say so.
const DRAIN: Duration = Duration::from_secs(1);

pub(super) struct Lane {
    config: Arc<Config>,
    link: Arc<Link>,
    channel: Channel,
    events: Pin<Box<dyn Stream<Item = Event> + Send + Sync>>,
    open: FuturesUnordered<Pin<Box<dyn Future<Output = Step> + Send>>>,
    /// Exchanges that were there when they were looked for.
    known: HashSet<ShortString>,
    /// Publishes to exchanges that are being looked for.
    waiting: HashMap<ShortString, Vec<Command>>,
}

enum Step {
    Ended(Outcome),
    Scouted(ShortString, Result<Result<(), lapin::Error>, BrokerError>),
}

impl Lane {
    pub(super) async fn open(config: &Arc<Config>) -> Result<Self, BrokerError> {
        let link = Link::open(config, "publisher").await?;
        // Before the first publish: an event without a listener is dropped.
        let events = Box::pin(link.connection().events_listener());
        let channel = link.channel(config).await?;
        let confirm = channel.confirm_select(ConfirmSelectOptions::default());
        match timeout(config.connect_timeout, confirm).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error::connecting(config.address(), error)),
            Err(elapsed) => {
                let (action, source) = ("turn on confirms in time", Box::new(elapsed));
                return Err(BrokerError::Backend { product: PRODUCT, action, source });
            }
        }
        Ok(Self {
            config: Arc::clone(config),
            link: Arc::new(link),
            channel,
            events,
            open: FuturesUnordered::new(),
            known: HashSet::from([ShortString::default()]),
            waiting: HashMap::new(),
        })
    }

    pub(super) fn is_connected(&self) -> bool {
        self.channel.status().connected()
    }

    /// Whether the broker asked publishers to stop.
    pub(super) fn is_blocked(&self) -> bool {
        self.link.connection().status().blocked()
    }

    /// How many publishes have no answer.
    pub(super) fn open_count(&self) -> usize {
        self.open.len() + self.waiting.values().map(Vec::len).sum::<usize>()
    }

    /// Sends a publish, or first looks whether its exchange is there: the broker answers a publish to
    /// a missing one by closing the channel under all others.
    pub(super) fn take(&mut self, command: Command) {
        let exchange = &command.prepared.exchange;
        if self.known.contains(exchange) {
            self.send(command);
        } else if let Some(waiting) = self.waiting.get_mut(exchange) {
            waiting.push(command);
        } else {
            let (config, link) = (Arc::clone(&self.config), Arc::clone(&self.link));
            let name = exchange.clone();
            self.waiting.insert(name.clone(), vec![command]);
            self.open
                .push(async move { Step::Scouted(name.clone(), scout(&config, &link, name).await) }.boxed());
        }
    }

    /// Waits until something has happened and answers what ended. `Err`: the channel has ended.
    ///
    /// Cancel safe.
    pub(super) async fn step(&mut self, state: &Signal) -> Result<(), String> {
        let step = tokio::select! {
            biased;
            Some(event) = self.events.next() => {
                note(&event, state);
                return Ok(());
            }
            Some(step) = self.open.next() => step,
            else => std::future::pending().await,
        };
        match step {
            Step::Scouted(exchange, found) => self.scouted(exchange, found),
            Step::Ended(outcome) => match &outcome.result {
                Ok(_) => outcome.answer(self.link.seen(), false),
                Err(error) => {
                    let reason = error::reason(error);
                    self.open.push(std::future::ready(Step::Ended(outcome)).boxed());
                    return Err(reason);
                }
            },
        }
        Ok(())
    }

    fn scouted(&mut self, exchange: ShortString, found: Result<Result<(), lapin::Error>, BrokerError>) {
        let waiting = self.waiting.remove(&exchange).unwrap_or_default();
        match found {
            Ok(Ok(())) => {
                self.known.insert(exchange);
                waiting.into_iter().for_each(|command| self.send(command));
            }
            Ok(Err(error)) if reply_code(&error) == Some(code::NOT_FOUND) => {
                let reason = error::reason(&error);
                for command in waiting {
                    command.fail(|destination| PublishError::Refused {
                        destination,
                        reason: reason.clone(),
                        later: true,
                    });
                }
            }
            Ok(Err(error)) => lose(waiting, &error::reason(&error)),
            Err(error) => lose(waiting, &error.to_string()),
        }
    }

    fn send(&self, command: Command) {
        let most = usize::try_from(self.link.connection().configuration().frame_max()).unwrap_or(usize::MAX);
        let found = command.prepared.header_len + 8;
        if found > most {
            let reason = format!("properties and headers need a frame of {found} bytes, the most is {most}");
            return command.fail(|destination| PublishError::TooLarge { destination, reason });
        }
        let Command { destination, prepared, nonce, reply } = command;
        let channel = self.channel.clone();
        self.open.push(
            async move {
                let result = publish(&channel, prepared).await;
                Step::Ended(Outcome { destination, nonce, reply, result })
            }
            .boxed(),
        );
    }

    /// Answers what is open, in a bounded time, and ends the connection.
    ///
    /// A publish that lapin has queued would be written on a closed channel and cost the connection, so
    /// a lane is never used after its channel.
    pub(super) async fn end(mut self) {
        let mut ended = Vec::new();
        let all = timeout(DRAIN, async {
            while let Some(step) = self.open.next().await {
                if let Step::Ended(outcome) = step {
                    ended.push(outcome);
                }
            }
        });
        let all = all.await.is_ok();
        let open_at_close = ended.iter().filter(|outcome| outcome.was_open_at_close()).count();
        for outcome in ended {
            let alone = all && open_at_close == 1 && outcome.was_open_at_close();
            outcome.answer(self.link.seen(), alone);
        }
        // Who is still without an answer loses the sender of it, and learns so.
        self.link.close(Some(&self.channel)).await;
    }
}

fn note(event: &Event, state: &Signal) {
    match event {
        Event::ConnectionBlocked(reason) => {
            warn!(reason, "the broker blocks publishers");
            state.set_down(format!("the broker blocks publishers: {reason}"));
        }
        Event::ConnectionUnblocked => state.set_up(),
        _ => {}
    }
}

fn lose(waiting: Vec<Command>, reason: &str) {
    for command in waiting {
        let reason = format!("not sent: {reason}");
        command.fail(|destination| PublishError::Unknown { destination, reason, source: None });
    }
}

async fn scout(
    config: &Config,
    link: &Link,
    exchange: ShortString,
) -> Result<Result<(), lapin::Error>, BrokerError> {
    link.on_channel(config, async |channel| {
        let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        channel.exchange_declare(exchange, ExchangeKind::Topic, options, FieldTable::default()).await
    })
    .await
}

async fn publish(channel: &Channel, prepared: Prepared) -> Result<Confirm, lapin::Error> {
    let Prepared { exchange, routing_key, properties, body, header_len: _ } = prepared;
    let options = BasicPublishOptions { mandatory: true, immediate: false };
    let sent = channel.basic_publish(exchange, routing_key, options, &body, properties).await?;
    Ok(match sent.await? {
        // Not what lapin pairs with the confirm: that is the first return, whosesoever it was.
        Confirmation::Ack(_) => Confirm::Ack,
        Confirmation::Nack(_) => Confirm::Nack,
        Confirmation::NotRequested => Confirm::NotRequested,
    })
}
