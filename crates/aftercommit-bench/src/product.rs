//! The product as an application uses it.

use std::sync::Arc;

use aftercommit_core::{Broker, Failure, Message, Subscription};
use aftercommit_inbox::{Consumer, Handled, Running, batch_fn, handler_fn};
use aftercommit_rabbitmq::{Config, RabbitMq};
use aftercommit_sql::{PgInbox, PgInboxOptions};
use futures_util::future::try_join_all;
use sqlx::postgres::{PgConnection, PgPoolOptions};

use crate::arena::Arena;
use crate::error::Result;
use crate::meter::Meter;
use crate::raw::{CONSUMER, Shape};
use crate::watched::Watched;

/// A consumer that runs, and the queue that was made beside its own.
pub(crate) struct Product {
    running: Running,
    dead_letters: String,
}

/// Starts the product; `set_based`: with a handler that writes a batch with one statement.
pub(crate) async fn start(
    arena: &Arena,
    shape: Shape,
    set_based: bool,
    meter: &Arc<Meter>,
) -> Result<Product> {
    let store = store(arena, shape.connections).await?;
    let inner: Arc<dyn Broker> = Arc::new(RabbitMq::connect(Config::new(&arena.place.amqp)?).await?);
    let subscription = Subscription::new(CONSUMER, arena.name.as_str())?.with_prefetch(shape.prefetch)?;
    let dead_letters = inner.dead_letter(&subscription).routing_key;
    let broker = Arc::new(Watched { inner, meter: Arc::clone(meter) });
    let consumer = if set_based {
        Consumer::batch(store, batch_fn(|db, messages| Box::pin(apply_all(db, messages))))
    } else {
        Consumer::new(store, handler_fn(|db, message| Box::pin(apply(db, message))))
    };
    let consumer = consumer.lanes(shape.connections).max_batch(shape.batch);
    let running = consumer.start(broker, subscription).await?;
    Ok(Product { running, dead_letters })
}

/// Makes the queue and the dead letters' queue.
pub(crate) async fn declare(arena: &Arena) -> Result<()> {
    let broker = RabbitMq::connect(Config::new(&arena.place.amqp)?).await?;
    broker.declare(&Subscription::new(CONSUMER, arena.name.as_str())?).await?;
    Ok(())
}

impl Product {
    pub(crate) async fn stop(self) -> Result<Option<String>> {
        self.running.shut_down();
        self.running.ended().await?;
        Ok(Some(self.dead_letters))
    }
}

async fn store(arena: &Arena, lanes: usize) -> Result<PgInbox> {
    let lanes = u32::try_from(lanes)?;
    let pool = PgPoolOptions::new().max_connections(lanes + 2).connect_with(arena.postgres()).await?;
    // Connected before the clock runs, as the yardstick's are.
    drop(try_join_all((0..lanes).map(|_| pool.acquire())).await?);
    let store = PgInbox::with_options(pool, PgInboxOptions::default().schema(arena.name.as_str())?);
    store.migrate().await?;
    Ok(store)
}

async fn apply(db: &mut PgConnection, message: &Message) -> Result<Handled, Failure> {
    sqlx::query("INSERT INTO effects (message_id, body) VALUES ($1, $2)")
        .bind(text(message))
        .bind(bytes(message))
        .execute(db)
        .await?;
    Ok(Handled::Applied)
}

async fn apply_all(db: &mut PgConnection, messages: &[&Message]) -> Result<Vec<Handled>, Failure> {
    let ids: Vec<_> = messages.iter().map(|message| text(message)).collect();
    let bodies: Vec<_> = messages.iter().map(|message| bytes(message)).collect();
    sqlx::query("INSERT INTO effects (message_id, body) SELECT * FROM unnest($1::text[], $2::bytea[])")
        .bind(ids)
        .bind(bodies)
        .execute(db)
        .await?;
    Ok(vec![Handled::Applied; messages.len()])
}

fn text(message: &Message) -> &str {
    message.id.as_deref().and_then(|id| std::str::from_utf8(id).ok()).unwrap_or_default()
}

fn bytes(message: &Message) -> &[u8] {
    message.body.as_deref().unwrap_or_default()
}
