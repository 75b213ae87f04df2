//! `inventory-service` with a batch handler: three statements for up to 100 orders instead of three for each.
//!
//!     cargo run -p aftercommit-examples --example batch

use std::process::ExitCode;
use std::sync::Arc;

use aftercommit::inbox::{InboxStore, json};
use aftercommit::{BatchHandler, Consumer, Failure, Handled, Message, connect};
use aftercommit_examples::{
    Args, BoxError, Database, OrderCreated, Story, Warehouse, exit_code, log_to_stderr, on_database,
};
use async_trait::async_trait;

struct Reserve;

fn order(message: &Message) -> Result<Arc<OrderCreated>, Failure> {
    message.decode_once(json::<OrderCreated>)
}

#[async_trait]
impl<S> BatchHandler<S> for Reserve
where
    S: InboxStore,
    S::Connection: Warehouse,
{
    /// A message that does not decode never reaches `handle`, and costs its neighbours nothing.
    fn decode(&self, message: &Message) -> Result<(), Failure> {
        order(message).map(drop)
    }

    async fn handle(&self, db: &mut S::Connection, messages: &[&Message]) -> Result<Vec<Handled>, Failure> {
        let orders = messages.iter().map(|message| order(message)).collect::<Result<Vec<_>, _>>()?;
        let taken = db.take(orders.len()).await?;
        // First come, first served: what is left over is rejected, and committed with the others.
        let status = |place| if place < taken { "reserved" } else { "rejected" };
        let rows: Vec<_> = orders
            .iter()
            .enumerate()
            .map(|(place, order)| (&*order.event_id, &*order.order_id, status(place)))
            .collect();
        db.write(&rows).await?;
        let handled = |place| if place < taken { Handled::Applied } else { Handled::Rejected };
        Ok((0..orders.len()).map(handled).collect())
    }
}

async fn run(args: Args) -> Result<bool, BoxError> {
    let broker = connect(&args.broker).await?;
    let database = Database::open(args.database.as_deref()).await?;
    let story = Story::of_orders(args.orders)?;
    on_database!(database.clone(), store => {
        story.tell(broker, &database, Consumer::batch(store, Reserve).max_batch(100)).await
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
