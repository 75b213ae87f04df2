//! `inventory-service`: one reservation per order, or a rejection when the stock is used up.
//!
//!     cargo run -p aftercommit-examples --example inventory
//!
//! A broker in memory lives in one process, so this publishes its own orders, some of them twice and some broken,
//! and checks what came of them; so it does on a real broker, unless it is told `--orders 0`: then it consumes what
//! `publish_orders` and others publish, until Ctrl-C.

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit::inbox::InboxStore;
use aftercommit::{Broker, Consumer, Failure, Handled, connect, shutdown_signal, typed};
use aftercommit_examples::{
    Args, BoxError, Database, OrderCreated, Story, Warehouse, exit_code, log_to_stderr, on_database,
    subscription,
};

/// One message, inside the transaction that holds its claim. The same code on every database.
async fn reserve(db: &mut impl Warehouse, order: &OrderCreated) -> Result<Handled, Failure> {
    let there_is_one = db.take(1).await? == 1;
    let status = if there_is_one { "reserved" } else { "rejected" };
    db.write(&[(&order.event_id, &order.order_id, status)]).await?;
    Ok(if there_is_one { Handled::Applied } else { Handled::Rejected })
}

fn consumer<S>(store: S) -> Consumer<S>
where
    S: InboxStore,
    S::Connection: Warehouse,
{
    Consumer::new(store, typed(|db: &mut S::Connection, order, _| Box::pin(reserve(db, order))))
}

async fn run(args: Args) -> Result<bool, BoxError> {
    let broker = connect(&args.broker).await?;
    let database = Database::open(args.database.as_deref()).await?;
    if args.orders == 0 {
        return until_ctrl_c(broker, database).await;
    }
    let story = Story::of_orders(args.orders)?;
    on_database!(database.clone(), store => story.tell(broker, &database, consumer(store)).await)
}

async fn until_ctrl_c(broker: Arc<dyn Broker>, database: Database) -> Result<bool, BoxError> {
    const ITEMS: usize = 1_000_000;
    database.stock(ITEMS).await?;
    let orders = subscription()?;
    broker.declare(&orders).await?;
    eprintln!("consuming from {} until Ctrl-C", orders.source);
    on_database!(database, store => consumer(store).run(broker, orders, shutdown_signal()).await)?;
    Ok(true)
}

#[tokio::main]
async fn main() -> ExitCode {
    log_to_stderr();
    exit_code(match Args::from_env() {
        Ok(args) => run(args).await,
        Err(error) => Err(error),
    })
}
