use aftercommit_core::Binding;
use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;

use crate::file::Write;

/// Makes queues and routes, and leaves alone what is there.
pub(crate) struct Declare {
    pub(crate) source: String,
    pub(crate) dead_letters: String,
    pub(crate) bindings: Vec<Binding>,
}

const QUEUE: &str = "INSERT INTO aftercommit_queue_queues (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
const EXCHANGE: &str =
    "INSERT INTO aftercommit_queue_exchanges (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
const ROUTE: &str = "INSERT INTO aftercommit_queue_routes (exchange, key, queue) \
    SELECT ?1, ?2, id FROM aftercommit_queue_queues WHERE name = ?3 ON CONFLICT DO NOTHING";

#[async_trait]
impl Write for Declare {
    type Answer = ();

    async fn run(&self, conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for queue in [&self.source, &self.dead_letters] {
            sqlx::query(QUEUE).bind(queue).execute(&mut *conn).await?;
        }
        // The default exchange leads everywhere by itself.
        for Binding { from, key } in self.bindings.iter().filter(|binding| !binding.from.is_empty()) {
            sqlx::query(EXCHANGE).bind(from).execute(&mut *conn).await?;
            sqlx::query(ROUTE).bind(from).bind(key).bind(&self.source).execute(&mut *conn).await?;
        }
        Ok(())
    }

    fn shows((): &()) -> bool {
        true
    }
}
