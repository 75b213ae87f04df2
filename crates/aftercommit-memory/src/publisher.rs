//! Taking messages in, and answering.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use async_trait::async_trait;

use aftercommit_core::{Destination, Outgoing, PublishError, Publisher, Receipt};

use crate::broken::Broken;
use crate::event::{Event, Position};
use crate::shared::Shared;
use crate::state::State;

/// What the broker says to one publish.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Kept(Position),
    NoRoute,
    Refused(&'static str),
    TooLarge(String),
    None(&'static str),
}

pub(crate) struct MemoryPublisher {
    shared: Arc<Shared>,
    connection: u64,
    opened_in: u64,
    spoiled: AtomicBool,
}

impl MemoryPublisher {
    pub(crate) const fn new(shared: Arc<Shared>, connection: u64, epoch: u64) -> Self {
        Self { shared, connection, opened_in: epoch, spoiled: AtomicBool::new(false) }
    }

    /// Waits while the broker answers nobody: until it does, the connection ends or the deadline
    /// passes. The message was taken before; only the answer is missing.
    async fn wait_for_answer(&self, answer: Answer) -> Answer {
        let (epoch, deadline) = {
            let state = self.shared.lock();
            (state.connected(self.connection), state.now + state.settings.publish_deadline)
        };
        let mut answer = Some(answer);
        self.shared
            .until_or_at(deadline, |state| {
                if state.connected(self.connection) != epoch {
                    return Some(Answer::None("the connection ended"));
                }
                if state.now >= deadline && !state.is(Broken::PublishNeverEnds) {
                    return Some(Answer::None("the deadline passed"));
                }
                if state.stalled { None } else { answer.take() }
            })
            .await
    }

    /// With [`Broken::AnswersSwapped`]: whoever looks first gets the newest answer.
    async fn swap(&self, answer: Answer) -> Answer {
        if !self.shared.lock().is(Broken::AnswersSwapped) {
            return answer;
        }
        self.shared.change(|state| state.answers.push(answer.clone()));
        let mut waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.shared.lock().answers.pop().unwrap_or(answer)
    }
}

#[async_trait]
impl Publisher for MemoryPublisher {
    async fn publish(&self, message: Outgoing) -> Result<Receipt, PublishError> {
        let answer = self.shared.change(|state| {
            let cut = state.connected(self.connection) != Some(self.opened_in);
            if self.spoiled.load(Ordering::Relaxed) || (cut && state.is(Broken::CutEndsPublisher)) {
                return Answer::None("the publisher is broken");
            }
            state.take_in(self.connection, &message)
        });
        let answer = self.wait_for_answer(answer).await;
        let answer = self.swap(answer).await;
        self.shared.change(|state| {
            let answer = state.bend(answer, self.connection, &message);
            let bad = !matches!(answer, Answer::Kept(_) | Answer::None(_));
            if bad && state.is(Broken::BadPublishBreaksPublisher) {
                self.spoiled.store(true, Ordering::Relaxed);
            }
            state.tell(answer, message.destination)
        })
    }
}

impl State {
    fn take_in(&mut self, connection: u64, sent: &Outgoing) -> Answer {
        if self.connected(connection).is_none() {
            return Answer::None("there is no connection");
        }
        let size = sent.message.body.as_ref().map_or(0, bytes::Bytes::len);
        let most = self.settings.max_size;
        if size > most {
            return Answer::TooLarge(format!("{size} bytes, the most is {most}"));
        }
        let Some(queues) = self.route(&sent.destination) else {
            return Answer::Refused("there is no such exchange");
        };
        if queues.is_empty() {
            return Answer::NoRoute;
        }
        if queues.iter().any(|queue| self.queues.get(queue).is_some_and(crate::queue::Queue::is_full)) {
            return Answer::Refused("the queue is full");
        }
        let position = self.keep(sent, queues);
        if self.answers_to_lose == 0 {
            return Answer::Kept(position);
        }
        self.answers_to_lose -= 1;
        Answer::None("the answer was lost")
    }

    /// The queues that a destination leads to; `None` when it does not exist.
    fn route(&self, to: &Destination) -> Option<Vec<String>> {
        if to.name.is_empty() {
            let queue = self.queues.contains_key(&to.routing_key).then(|| to.routing_key.clone());
            return Some(queue.into_iter().collect());
        }
        let mut queues: Vec<_> = self
            .exchanges
            .get(&to.name)?
            .iter()
            .filter(|route| route.key == "#" || route.key == to.routing_key)
            .filter(|route| self.queues.contains_key(&route.queue))
            .map(|route| route.queue.clone())
            .collect();
        queues.sort();
        queues.dedup();
        if self.is(Broken::OneCopyForAll) {
            queues.truncate(1);
        }
        Some(queues)
    }

    fn keep(&mut self, sent: &Outgoing, queues: Vec<String>) -> Position {
        let position = self.number();
        for name in &queues {
            if self.is(Broken::PublishForgets)
                || (self.is(Broken::DeadLettersVanish) && crate::topology::is_dead_letters(name))
            {
                continue;
            }
            let message = self.as_kept(sent, name, position);
            for copy in 0..self.copies(name) {
                let position = if copy == 0 { position } else { self.number() };
                if let Some(queue) = self.queues.get_mut(name) {
                    queue.push(position, message.clone());
                }
            }
        }
        let (destination, id) = (sent.destination.clone(), sent.message.id.clone());
        self.events.push(Event::Published { destination, id, position, queues });
        position
    }

    fn copies(&self, queue: &str) -> usize {
        let readers = self.subscribers.values().filter(|subscriber| subscriber.queue == queue).count();
        match () {
            () if self.is(Broken::PublishTwice) => 2,
            () if self.is(Broken::EveryProcessGetsAll) => readers.max(1),
            () => 1,
        }
    }

    /// What the switches make of an answer.
    fn bend(&mut self, answer: Answer, connection: u64, sent: &Outgoing) -> Answer {
        match answer {
            Answer::NoRoute if self.is(Broken::UnroutableSaysOk) => Answer::Kept(0),
            Answer::Refused(_) if self.is(Broken::RefusedSaysOk) => Answer::Kept(0),
            Answer::TooLarge(_) if self.is(Broken::TooLargeSaysOk) => Answer::Kept(0),
            Answer::TooLarge(_) if self.is(Broken::TooLargeSaysUnknown) => Answer::None("the channel ended"),
            Answer::None(_) if self.is(Broken::UnknownSaysOk) => Answer::Kept(0),
            Answer::None(reason) if self.is(Broken::HiddenRetry) => {
                self.take_in(connection, sent);
                Answer::None(reason)
            }
            answer => answer,
        }
    }

    fn tell(&mut self, answer: Answer, destination: Destination) -> Result<Receipt, PublishError> {
        Err(match answer {
            Answer::Kept(position) => {
                self.events.push(Event::Confirmed { position });
                return Ok(Receipt::new(destination, Some(position.to_string())));
            }
            Answer::NoRoute => PublishError::Unroutable { destination },
            Answer::Refused(reason) => {
                let later = !self.is(Broken::RefusedForGood);
                PublishError::Refused { destination, reason: reason.into(), later }
            }
            Answer::TooLarge(reason) => PublishError::TooLarge { destination, reason },
            Answer::None(reason) => {
                PublishError::Unknown { destination, reason: reason.into(), source: None }
            }
        })
    }
}
