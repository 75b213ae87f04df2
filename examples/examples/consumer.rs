//! One parcel for each order, whatever crashes.
use aftercommit::{Consumer, Failure, Handled, Subscription, connect, sql::PgInbox, sql::sqlx, typed};
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}

async fn ship(db: &mut sqlx::PgConnection, order: &Order) -> Result<Handled, Failure> {
    sqlx::query("INSERT INTO parcels VALUES ($1)").bind(&order.order_id).execute(db).await?;
    Ok(Handled::Applied)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
    let broker = connect(&url("BROKER_URL", "amqp://guest:guest@127.0.0.1:25472")).await?;
    let store = PgInbox::connect(&url("DATABASE_URL", "postgres://aftercommit@127.0.0.1:25432")).await?;
    store.migrate().await?;
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS parcels (order_id text)").execute(store.pool()).await?;
    let orders = Subscription::new("shipping", "shipping")?.with_binding("orders.events", "order.created");
    broker.declare(&orders).await?;
    let consumer = Consumer::new(store, typed(|db, order, _| Box::pin(ship(db, order))));
    Ok(consumer.run(broker, orders, aftercommit::shutdown_signal()).await?)
}
