//! The broker from outside: what an operator, a network or a test does to it.

use crate::broken::Broken;
use crate::broker::MemoryBroker;
use crate::clock::Clock;
use crate::event::Event;
use crate::queue::{Depth, Limit};

impl MemoryBroker {
    /// The broker's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(std::sync::Arc::clone(&self.shared))
    }

    /// What happened so far, in order.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.shared.lock().events.clone()
    }

    /// What is in a queue; `None` if there is no such queue.
    #[must_use]
    pub fn depth(&self, queue: &str) -> Option<Depth> {
        self.shared.lock().queues.get(queue).map(crate::queue::Queue::depth)
    }

    /// Breaks a promise from now on.
    #[must_use]
    pub fn with_broken(self, promise: Broken) -> Self {
        self.shared.change(|state| state.broken.insert(promise));
        self
    }

    /// Makes a queue, with a limit if one is given. One that exists keeps its messages and gets the
    /// limit.
    pub fn make_queue(&self, name: &str, limit: Option<Limit>) {
        self.shared.change(|state| {
            state.queues.entry(name.to_owned()).or_default().limit = limit;
            state.attach_all();
        });
    }

    /// Deletes a queue with all that is in it. Its subscriptions wait until it is made again.
    pub fn delete_queue(&self, name: &str) {
        self.shared.change(|state| state.delete_queue(name));
    }

    /// Makes an exchange without routes, if it is not there.
    pub fn make_exchange(&self, name: &str) {
        self.shared.change(|state| {
            state.exchanges.entry(name.to_owned()).or_default();
        });
    }

    /// Removes the routes of an exchange that lead into a queue.
    pub fn unbind(&self, exchange: &str, queue: &str) {
        self.shared.change(|state| {
            if let Some(routes) = state.exchanges.get_mut(exchange) {
                routes.retain(|route| route.queue != queue);
            }
        });
    }

    /// Cuts every connection. What is unsettled returns to its queue, ackers that are out answer
    /// `Lost`, sources subscribe again at once.
    pub fn cut_connections(&self) {
        self.shared.change(|state| state.cut(None));
    }

    /// Ends this connection as the death of its process would: it never comes back, its sources
    /// deliver nothing more, its publishers send nothing more.
    pub fn abandon(&self) {
        self.shared.change(|state| {
            if let Some(connection) = state.connections.get_mut(&self.connection) {
                connection.alive = false;
            }
            state.cut(Some(self.connection));
        });
    }

    /// Makes the broker unreachable until [`bring_up`](Self::bring_up).
    pub fn take_down(&self) {
        self.shared.change(|state| {
            state.reachable = false;
            state.cut(None);
        });
    }

    /// Makes the broker reachable again.
    pub fn bring_up(&self) {
        self.shared.change(|state| {
            state.reachable = true;
            state.attach_all();
        });
    }

    /// Takes the broker down and up. Its queues survive, as durable ones do.
    pub fn restart(&self) {
        self.take_down();
        self.shared.change(|state| {
            if state.is(Broken::RestartForgets) {
                for queue in state.queues.values_mut() {
                    queue.clear();
                }
            }
        });
        self.bring_up();
    }

    /// From now on the broker takes messages and answers no publisher, until
    /// [`go_on`](Self::go_on).
    pub fn stall(&self) {
        self.shared.change(|state| state.stalled = true);
    }

    /// Ends [`stall`](Self::stall): the answers that are still waited for arrive.
    pub fn go_on(&self) {
        self.shared.change(|state| state.stalled = false);
    }

    /// Loses the answers to the next publishes whose message is kept: they end as `Unknown`.
    pub fn lose_answers(&self, count: usize) {
        self.shared.change(|state| state.answers_to_lose = count);
    }
}
