//! `order-service`: publishes orders to a real broker, and waits until each is confirmed. Start a consumer first: a
//! message that no queue takes is an error.
//!
//!     cargo run -p aftercommit-examples --features rabbitmq --example publish_orders -- \
//!         --broker amqp://guest:guest@127.0.0.1:25472 --orders 100

use std::process::ExitCode;

use aftercommit::connect;
use aftercommit_examples::{
    Args, BoxError, EVENTS, OrderCreated, exit_code, log_to_stderr, new_run, publish,
};

async fn run(args: Args) -> Result<bool, BoxError> {
    if args.broker.starts_with("memory:") {
        return Err("a broker in memory lives in one process: name a real one with --broker".into());
    }
    let broker = connect(&args.broker).await?;
    let run = new_run();
    let orders = (0..args.orders).map(|number| OrderCreated::example(&run, number).message());
    let orders = orders.collect::<Result<Vec<_>, _>>()?;
    // No queue of a consumer, no positive answer: start one first.
    publish(&*broker.publisher().await?, EVENTS, &orders).await?;
    println!("published and confirmed: {} orders, {run}-0 …", orders.len());
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
