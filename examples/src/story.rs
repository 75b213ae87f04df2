mod letters;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aftercommit::inbox::InboxStore;
use aftercommit::{Broker, Consumer, Destination, Message, Outcome, Outgoing, Publisher, Subscription};
use futures_util::future::try_join_all;

use crate::log::Counters;
use crate::order::{EVENTS, OrderCreated, subscription};
use crate::{BoxError, Database, Rows};

/// How long the consumer may take for everything.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many publishes wait for their answer at once.
const WINDOW: usize = 50;

/// What is published, and what must come of it.
#[derive(Clone, Debug)]
pub struct Story {
    /// What the consumer reads.
    pub subscription: Subscription,
    /// The exchange that the messages are published to.
    pub exchange: &'static str,
    /// What the ids of this run begin with, so that runs can share a database.
    pub run: String,
    /// How many items are in stock at the beginning.
    pub stock: usize,
    /// Messages in the order of publishing; a wave is confirmed before the next one begins.
    pub waves: Vec<Vec<Message>>,
    /// What must come of them.
    pub expected: Figures,
}

/// What happened to the messages, and what is in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Publishes that the broker confirmed.
    pub published: u64,
    /// Messages with an effect.
    pub applied: u64,
    /// Messages to which the business said no.
    pub rejected: u64,
    /// Messages that the inbox knew already.
    pub duplicates: u64,
    /// Messages found in the dead letters.
    pub dead_letters: u64,
    /// Rows in the database.
    pub rows: Rows,
}

impl Story {
    /// `count` orders of which every twentieth is published twice, with items for nineteen of twenty in stock, and two
    /// messages that nobody can handle.
    ///
    /// # Errors
    /// Never for these orders.
    pub fn of_orders(count: usize) -> Result<Self, BoxError> {
        let run = new_run();
        let mut messages = Vec::new();
        for number in 0..count {
            let message = OrderCreated::example(&run, number).message()?;
            if number % 20 == 0 {
                messages.push(message.clone());
            }
            messages.push(message);
        }
        let mut nameless = OrderCreated::example(&run, count).message()?;
        nameless.id = None;
        messages.push(nameless);
        messages.push(
            Message::new(format!("{{ {run}")).with_id(format!("{run}-broken")).with_type("order.created"),
        );

        let stock = count - count / 20;
        let (twice, short) = (count.div_ceil(20), count / 20);
        let expected = Figures {
            published: (count + twice + 2) as u64,
            applied: stock as u64,
            rejected: short as u64,
            duplicates: twice as u64,
            dead_letters: 2,
            rows: Rows { reserved: stock as u64, rejected: short as u64, cancelled: 0 },
        };
        Ok(Self {
            subscription: subscription()?,
            exchange: EVENTS,
            run,
            stock,
            waves: vec![messages],
            expected,
        })
    }

    /// Starts the consumer, lets it handle what others left in its queue, publishes everything, waits until
    /// everything has an outcome, stops the consumer, looks into database and dead letters, and prints what it
    /// found; whether it is what it must be.
    ///
    /// # Errors
    /// When broker or database fail, or the consumer does not finish in time.
    ///
    /// # Cancel safety
    /// A dropped future shuts the consumer down in the background.
    pub async fn tell<S: InboxStore>(
        self,
        broker: Arc<dyn Broker>,
        database: &Database,
        consumer: Consumer<S>,
    ) -> Result<bool, BoxError> {
        let counters = Counters::install()?;
        database.stock(self.stock).await?;
        broker.declare(&self.subscription).await?;
        let running = consumer.start(Arc::clone(&broker), self.subscription.clone()).await?;
        let before = quiet(&counters).await;
        // Others' orders may have taken some.
        database.stock(self.stock).await?;
        let publisher = broker.publisher().await?;
        let mut published = 0;
        for wave in &self.waves {
            publish(&*publisher, self.exchange, wave).await?;
            published += wave.len() as u64;
        }
        tokio::time::timeout(PATIENCE, settled(&counters, before.total() + published))
            .await
            .map_err(|_| format!("not everything has an outcome after {PATIENCE:?}; see the log"))?;
        running.shut_down();
        running.ended().await?;

        let letters = letters::of_run(&*broker, &self.subscription, &self.run).await?;
        let after = Outcomes::now(&counters);
        let found = Figures {
            published,
            applied: after.applied - before.applied,
            rejected: after.rejected - before.rejected,
            duplicates: after.duplicates - before.duplicates,
            dead_letters: letters.len() as u64,
            rows: database.count(&self.run).await?,
        };
        println!("{found}");
        for reason in letters {
            println!("  dead letter: {reason}");
        }
        let right = found == self.expected;
        if right {
            println!("every figure is what it must be");
        } else {
            println!("NOT what it must be:\n{}", self.expected);
        }
        Ok(right)
    }
}

/// Publishes messages with their type as routing key, and waits until the broker has confirmed each.
///
/// # Errors
/// The first message without a positive answer.
///
/// # Cancel safety
/// A dropped future leaves it open which messages exist.
pub async fn publish(
    publisher: &dyn Publisher,
    exchange: &str,
    messages: &[Message],
) -> Result<(), BoxError> {
    for window in messages.chunks(WINDOW) {
        let sent = window.iter().map(|message| {
            let key = message.event_type.clone().unwrap_or_default();
            let destination = Destination::new(exchange).with_routing_key(key);
            publisher.publish(Outgoing::new(destination, message.clone()))
        });
        try_join_all(sent).await?;
    }
    Ok(())
}

/// A name for a run that no other run has.
#[must_use]
pub fn new_run() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}

/// What the counters say.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Outcomes {
    applied: u64,
    rejected: u64,
    duplicates: u64,
    parked: u64,
}

impl Outcomes {
    fn now(counters: &Counters) -> Self {
        Self {
            applied: counters.of(Outcome::Applied),
            rejected: counters.of(Outcome::Rejected),
            duplicates: counters.of(Outcome::Duplicate),
            parked: counters.of(Outcome::Parked),
        }
    }

    const fn total(self) -> u64 {
        self.applied + self.rejected + self.duplicates + self.parked
    }
}

/// Waits until nothing has had an outcome for a moment.
async fn quiet(counters: &Counters) -> Outcomes {
    loop {
        let before = Outcomes::now(counters);
        tokio::time::sleep(Duration::from_millis(500)).await;
        if Outcomes::now(counters) == before {
            return before;
        }
    }
}

async fn settled(counters: &Counters, total: u64) {
    while Outcomes::now(counters).total() < total {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { reserved, rejected, cancelled } = self.rows;
        let rows = reserved + rejected + cancelled;
        writeln!(f, "published    {:6}", self.published)?;
        writeln!(f, "applied      {:6}", self.applied)?;
        writeln!(
            f,
            "rejected     {:6}  the business said no: committed and confirmed like a yes",
            self.rejected
        )?;
        writeln!(f, "duplicates   {:6}  the inbox knew them", self.duplicates)?;
        writeln!(f, "dead letters {:6}", self.dead_letters)?;
        write!(f, "database rows{rows:6}  {reserved} reserved, {rejected} rejected, {cancelled} cancelled")
    }
}
