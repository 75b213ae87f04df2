//! What survives a crash: the broker and the database file, and what must be found in them at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use aftercommit_conformance::inbox::{Books as _, Ledger};
use aftercommit_core::{Broker as _, Destination, Message, Outgoing, Subscription};
use aftercommit_integration_tests::books::SqliteBooks;
use aftercommit_memory::MemoryBroker;
use aftercommit_sql::SqliteInbox;
use tokio::runtime::{Builder, Runtime};

pub(crate) const CONSUMER: &str = "billing";
const QUEUE: &str = "orders";

/// Always fails, and is parked after its attempts.
pub(crate) const BAD: &str = "bad";
/// Fails the first time in each life.
pub(crate) const WOBBLY: &str = "wobbly";
/// Does not decode.
pub(crate) const POISON: &str = "poison";

const APPLIED: [&str; 5] = ["one", "two", "three", "four", WOBBLY];

pub(crate) struct World {
    pub(crate) server: MemoryBroker,
    pub(crate) ledger: Arc<dyn Ledger<SqliteInbox>>,
    pub(crate) subscription: Subscription,
}

impl World {
    /// A broker with all messages in its queue, and an empty database.
    pub(crate) fn new() -> Self {
        let server = MemoryBroker::new();
        let subscription = Subscription::new(CONSUMER, QUEUE).unwrap();
        let ledger = runtime().block_on(async {
            server.declare(&subscription).await.unwrap();
            let publisher = server.publisher().await.unwrap();
            let to = Destination::new("").with_routing_key(QUEUE);
            for id in ["one", "two", "one", BAD, WOBBLY, POISON, "three", "two", "four"] {
                let message = Message::new(id).with_id(id);
                publisher.publish(Outgoing::new(to.clone(), message)).await.unwrap();
            }
            SqliteBooks.open("crash").await.unwrap()
        });
        Self { server, ledger, subscription }
    }

    pub(crate) fn left(&self) -> usize {
        self.server.depth(QUEUE).unwrap().total()
    }

    /// One effect per id, nothing lost, nothing left.
    pub(crate) fn check(&self, place: &str) {
        assert_eq!(self.left(), 0, "messages left in the queue: {place}");
        let effects = runtime().block_on(self.ledger.effects()).unwrap();
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for effect in effects {
            *count.entry(String::from_utf8(effect.id).unwrap()).or_default() += 1;
        }
        let once: BTreeMap<_, _> = APPLIED.iter().map(|id| ((*id).to_owned(), 1)).collect();
        assert_eq!(count, once, "effects: {place}");
        // A second copy of a letter is allowed, a missing one is a lost message.
        let letters = runtime().block_on(self.letters());
        for id in [BAD, POISON] {
            assert!(letters.iter().any(|letter| letter == id), "no letter of {id} in {letters:?}: {place}");
        }
        assert!(letters.iter().all(|id| [BAD, POISON].contains(&id.as_str())), "{letters:?}: {place}");
    }

    async fn letters(&self) -> Vec<String> {
        let connection = self.server.connect();
        let mut source = connection.dead_letters(&self.subscription).await.unwrap();
        let dead = connection.dead_letter(&self.subscription).routing_key;
        let mut letters = Vec::new();
        while letters.len() < self.server.depth(&dead).unwrap().total() {
            for delivery in source.recv(10).await.unwrap() {
                letters.push(String::from_utf8(delivery.message.id.as_deref().unwrap().to_vec()).unwrap());
            }
        }
        connection.abandon();
        letters
    }
}

/// One thread, so that a run differs little from the one before it and dies as a whole when it is dropped.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
