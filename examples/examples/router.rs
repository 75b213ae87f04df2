//! One queue, several kinds of events: a handler per type and schema version, and dead letters for the others.
//!
//!     cargo run -p aftercommit-examples --example router

use std::process::ExitCode;

use aftercommit::inbox::InboxStore;
use aftercommit::{Consumer, Failure, Handled, Message, Router, Subscription, connect, typed};
use aftercommit_examples::{
    Args, BoxError, Database, Figures, OrderCreated, Rows, Story, Warehouse, exit_code, log_to_stderr,
    new_run, on_database,
};
use serde::{Deserialize, Serialize};

/// Apart from `orders.events`, whose consumers know one version only.
const CHANGES: &str = "orders.changes";

/// Version 2 of `order.created` says what it costs in one place.
#[derive(Serialize, Deserialize)]
struct OrderCreated2 {
    event: String,
    order: String,
    total: (f64, String),
}

#[derive(Serialize, Deserialize)]
struct OrderCancelled {
    order: String,
}

async fn reserve(db: &mut impl Warehouse, event: &str, order: &str) -> Result<Handled, Failure> {
    if db.take(1).await? == 0 {
        return Err(Failure::invariant("there is always stock in this story"));
    }
    db.write(&[(event, order, "reserved")]).await?;
    Ok(Handled::Applied)
}

async fn cancel(db: &mut impl Warehouse, order: &str) -> Result<Handled, Failure> {
    if db.cancel(order).await? {
        return Ok(Handled::Applied);
    }
    // Another attempt would not find it either: a dead letter at once.
    Err(Failure::invariant(format!("no reservation of {order} to cancel")))
}

fn router<S>() -> Router<S>
where
    S: InboxStore,
    S::Connection: Warehouse,
{
    Router::new()
        .on(
            "order.created",
            1,
            typed(|db: &mut S::Connection, order: &OrderCreated, _| {
                Box::pin(reserve(db, &order.event_id, &order.order_id))
            }),
        )
        .on(
            "order.created",
            2,
            typed(|db: &mut S::Connection, order: &OrderCreated2, _| {
                Box::pin(reserve(db, &order.event, &order.order))
            }),
        )
        .on(
            "order.cancelled",
            1,
            typed(|db: &mut S::Connection, event: &OrderCancelled, _| Box::pin(cancel(db, &event.order))),
        )
}

/// As many orders as asked for, every second one in version 2; then every fourth one is cancelled, an unknown order is
/// cancelled, and somebody publishes a version that nobody handles.
fn story(count: usize) -> Result<Story, BoxError> {
    let run = new_run();
    let (mut created, mut cancelled) = (Vec::new(), Vec::new());
    for number in 0..count {
        let order = OrderCreated::example(&run, number);
        created.push(if number % 2 == 0 { order.message()? } else { version_2(&order)? });
        if number % 4 == 0 {
            cancelled.push(cancellation(&run, number)?);
        }
    }
    cancelled.push(cancellation(&run, count)?);
    let mut newer = OrderCreated::example(&run, count + 1).message()?;
    newer.schema_version = Some("3".into());
    cancelled.push(newer);

    let gone = count.div_ceil(4);
    let expected = Figures {
        published: (count + gone + 2) as u64,
        applied: (count + gone) as u64,
        dead_letters: 2,
        rows: Rows { reserved: (count - gone) as u64, rejected: 0, cancelled: gone as u64 },
        ..Figures::default()
    };
    let subscription = Subscription::new("inventory-router", "inventory.changes")?
        .with_binding(CHANGES, "order.created")
        .with_binding(CHANGES, "order.cancelled");
    Ok(Story {
        subscription,
        exchange: CHANGES,
        run,
        stock: count,
        waves: vec![created, cancelled],
        expected,
    })
}

fn version_2(order: &OrderCreated) -> Result<Message, BoxError> {
    let body = OrderCreated2 {
        event: order.event_id.clone(),
        order: order.order_id.clone(),
        total: (order.amount, order.currency.clone()),
    };
    let mut message = order.message()?;
    message.body = Some(serde_json::to_vec(&body)?.into());
    message.schema_version = Some("2".into());
    Ok(message)
}

fn cancellation(run: &str, number: usize) -> Result<Message, BoxError> {
    let order = OrderCreated::example(run, number).order_id;
    let body = serde_json::to_vec(&OrderCancelled { order: order.clone() })?;
    // The same key as the order's creation: a cancellation never overtakes it inside a process.
    let mut message = Message::new(body)
        .with_id(format!("{run}-{number}-cancelled"))
        .with_type("order.cancelled")
        .with_key(order);
    message.schema_version = Some("1".into());
    Ok(message)
}

async fn run(args: Args) -> Result<bool, BoxError> {
    let broker = connect(&args.broker).await?;
    let database = Database::open(args.database.as_deref()).await?;
    let story = story(args.orders)?;
    on_database!(database.clone(), store => {
        story.tell(broker, &database, Consumer::new(store, router())).await
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    log_to_stderr();
    exit_code(match Args::from_env() {
        Ok(args) => run(args).await,
        Err(error) => Err(error),
    })
}
