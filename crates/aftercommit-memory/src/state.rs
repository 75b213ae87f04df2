//! What the broker knows: queues, routes, connections, subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aftercommit_core::Signal;
use tokio::time::Instant;

use crate::broken::Broken;
use crate::event::{Event, Position};
use crate::queue::Queue;
use crate::settings::{Settings, Time};
use crate::subscriber::Subscriber;

/// A route from an exchange into a queue. `#` as key matches every routing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) key: String,
    pub(crate) queue: String,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) alive: bool,
    /// Raised by each cut: who waits for an answer from before will not get it.
    pub(crate) epoch: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) broken: BTreeSet<Broken>,
    pub(crate) now: Duration,
    /// When the world's clock was last looked at; [`Time::Virtual`] never does.
    looked: Option<Instant>,
    pub(crate) queues: BTreeMap<String, Queue>,
    pub(crate) exchanges: BTreeMap<String, Vec<Route>>,
    pub(crate) subscribers: BTreeMap<u64, Subscriber>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) reachable: bool,
    pub(crate) stalled: bool,
    pub(crate) answers_to_lose: usize,
    /// Answers in flight, for [`Broken::AnswersSwapped`] alone.
    pub(crate) answers: Vec<crate::publisher::Answer>,
    pub(crate) events: Vec<Event>,
    last: u64,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let looked = (settings.time == Time::Real).then(Instant::now);
        Self {
            settings,
            broken: BTreeSet::new(),
            now: Duration::ZERO,
            looked,
            queues: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            connections: BTreeMap::new(),
            reachable: true,
            stalled: false,
            answers_to_lose: 0,
            answers: Vec::new(),
            events: Vec::new(),
            last: 0,
        }
    }

    pub(crate) fn look_at_the_clock(&mut self) {
        if let Some(looked) = &mut self.looked {
            let now = Instant::now();
            self.now += now.saturating_duration_since(*looked);
            *looked = now;
        }
    }

    /// How long until something becomes due, the deadline with it. What is due already waits for a change, not for time.
    pub(crate) fn real_time_until_next(&self, deadline: Duration) -> Option<Duration> {
        self.looked?;
        let held = self.subscribers.values().flat_map(|subscriber| subscriber.held.iter());
        let waiting = self.queues.values().flat_map(Queue::waiting);
        let due = held.chain(waiting).map(|(due, _)| *due).chain([deadline]);
        let next = due.filter(|due| *due > self.now).min()?;
        (next < Duration::MAX).then(|| next.saturating_sub(self.now))
    }

    pub(crate) fn is(&self, broken: Broken) -> bool {
        self.broken.contains(&broken)
    }

    /// The next number for a message, a connection or a subscriber.
    pub(crate) const fn number(&mut self) -> Position {
        self.last += 1;
        self.last
    }

    pub(crate) fn connect(&mut self) -> u64 {
        let number = self.number();
        self.connections.insert(number, Connection { alive: true, epoch: 0 });
        number
    }

    /// The connection's epoch while it works; `None` while it does not.
    pub(crate) fn connected(&self, connection: u64) -> Option<u64> {
        let connection = self.connections.get(&connection).filter(|connection| connection.alive)?;
        self.reachable.then_some(connection.epoch)
    }

    pub(crate) fn subscribe(&mut self, connection: u64, queue: &str, prefetch: usize, health: Signal) -> u64 {
        let number = self.number();
        self.subscribers.insert(number, Subscriber::new(connection, queue.to_owned(), prefetch, health));
        self.attach_all();
        number
    }

    /// Subscribes everyone whose queue and connection are there, and cuts off everyone else.
    pub(crate) fn attach_all(&mut self) {
        let numbers: Vec<_> = self.subscribers.keys().copied().collect();
        for number in numbers {
            let Some(subscriber) = self.subscribers.get(&number) else { continue };
            let (attached, again) = (subscriber.attached, subscriber.epoch > 0);
            let possible = self.connected(subscriber.connection).is_some()
                && self.queues.contains_key(&subscriber.queue)
                && !(again && self.is(Broken::NoReconnect));
            match (attached, possible) {
                (false, true) => self.attach(number, again),
                (true, false) => self.detach(number, "the broker or the queue is away"),
                (true, true) | (false, false) => {}
            }
        }
    }

    fn attach(&mut self, number: u64, again: bool) {
        let silent = again && self.is(Broken::HealthStaysDown);
        let Some(subscriber) = self.subscribers.get_mut(&number) else { return };
        subscriber.attached = true;
        if !silent {
            subscriber.health.set_up();
        }
    }

    fn detach(&mut self, number: u64, reason: &str) {
        let (lying, losing) = (self.is(Broken::HealthUpWhileDown), self.is(Broken::CutLosesUnsettled));
        let Some(subscriber) = self.subscribers.get_mut(&number) else { return };
        subscriber.attached = false;
        if !lying {
            subscriber.health.set_down(reason);
        }
        let (queue, unsettled) = (subscriber.queue.clone(), subscriber.end_epoch());
        self.return_all(&queue, unsettled, losing);
    }

    fn return_all(&mut self, queue: &str, positions: Vec<Position>, losing: bool) {
        let Some(queue) = self.queues.get_mut(queue) else { return };
        for position in positions {
            if losing {
                queue.remove(position);
            } else {
                queue.put_back(position);
            }
        }
    }

    /// Cuts every connection, or one. What is unsettled returns; who can subscribes again at once.
    pub(crate) fn cut(&mut self, only: Option<u64>) {
        self.events.push(Event::Cut);
        for (number, connection) in &mut self.connections {
            if only.is_none_or(|only| only == *number) {
                connection.epoch += 1;
            }
        }
        let hit: Vec<_> = self
            .subscribers
            .iter()
            .filter(|(_, subscriber)| {
                subscriber.attached && only.is_none_or(|only| only == subscriber.connection)
            })
            .map(|(number, _)| *number)
            .collect();
        for number in hit {
            self.detach(number, "the connection was cut");
        }
        self.attach_all();
    }

    /// Ends a subscription: what is unsettled goes back.
    pub(crate) fn unsubscribe(&mut self, number: u64) {
        let Some(mut subscriber) = self.subscribers.remove(&number) else { return };
        if self.is(Broken::CloseLosesHeld)
            && let Some(queue) = self.queues.get_mut(&subscriber.queue)
        {
            for (_, position) in &subscriber.held {
                queue.remove(*position);
            }
        }
        subscriber.health.set_down("closed");
        let unsettled = subscriber.end_epoch();
        let losing = self.is(Broken::CloseLosesUnsettled);
        self.return_all(&subscriber.queue, unsettled, losing);
        self.events.push(Event::Closed { queue: subscriber.queue });
    }

    pub(crate) fn delete_queue(&mut self, name: &str) {
        self.queues.remove(name);
        if self.is(Broken::RecreatedNotRead) {
            for subscriber in self.subscribers.values_mut().filter(|subscriber| subscriber.queue == name) {
                subscriber.queue.push_str(" (deleted)");
            }
        }
        self.attach_all();
    }
}
