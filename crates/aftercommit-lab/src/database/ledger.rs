//! The SQL of a run, once for both databases.

/// Implements [`Ledger`](super::Ledger) for a type with a `store`, whose `create`, `remove` and `version` are its own
/// inherent functions.
macro_rules! ledger {
    ($ledger:ty, $store:ty, $connection:ty) => {
        #[async_trait::async_trait]
        impl super::Ledger for $ledger {
            async fn version(&self) -> Result<String, LabError> {
                let version = sqlx::query_scalar(Self::VERSION).fetch_one(self.store.pool()).await;
                version.map_err(LabError::doing("asking the database for its version"))
            }

            async fn create(&self) -> Result<(), LabError> {
                self.make_place().await?;
                self.store.migrate().await.map_err(LabError::doing("making the inbox's tables"))?;
                let sql = "CREATE TABLE effects (message_id text NOT NULL, order_id text NOT NULL)";
                let made = sqlx::query(sql).execute(self.store.pool()).await;
                made.map(drop).map_err(LabError::doing("making the table of effects"))
            }

            async fn remove(&self) -> Result<(), LabError> {
                self.remove_place().await
            }

            async fn effects(&self) -> Result<Vec<(String, String)>, LabError> {
                let sql = "SELECT message_id, order_id FROM effects ORDER BY message_id";
                let found = sqlx::query_as(sql).fetch_all(self.store.pool()).await;
                found.map_err(LabError::doing("reading the effects"))
            }

            async fn processed(&self) -> Result<u64, LabError> {
                let sql = "SELECT count(*) FROM inbox_messages WHERE consumer_name = $1";
                let found = sqlx::query_scalar(sql).bind(CONSUMER).fetch_one(self.store.pool()).await;
                let found: i64 = found.map_err(LabError::doing("counting the inbox's rows"))?;
                Ok(found.unsigned_abs())
            }

            async fn attempt(&self, id: &str) -> Result<u64, LabError> {
                let sql = "SELECT CAST(failures AS bigint) FROM inbox_attempts
                    WHERE consumer_name = $1 AND message_id = $2";
                let found = sqlx::query_scalar(sql).bind(CONSUMER).bind(id);
                let found = found.fetch_optional(self.store.pool()).await;
                let failures: Option<i64> = found.map_err(LabError::doing("reading the attempts"))?;
                Ok(1 + failures.unwrap_or_default().unsigned_abs())
            }

            async fn start(
                &self,
                broker: std::sync::Arc<dyn aftercommit::Broker>,
                subscription: aftercommit::Subscription,
                journal: Journal,
                script: Script,
            ) -> Result<aftercommit::Running, aftercommit::ConsumerError> {
                let business = FaultyHandler::new(Business(journal), script);
                let consumer = Consumer::new(self.store.clone(), business).lanes(1).max_batch(1);
                consumer.start(broker, subscription).await
            }

            async fn write_effect(&self, message: &Message) -> Result<(), LabError> {
                let conn = self.store.pool().acquire().await;
                let mut conn = conn.map_err(LabError::doing("taking a connection"))?;
                effect(&mut conn, message).await.map_err(LabError::doing("writing the effect"))
            }

            async fn write_record(&self, id: &str) -> Result<(), LabError> {
                let written = sqlx::query(RECORD).bind(CONSUMER).bind(id).execute(self.store.pool()).await;
                written.map(drop).map_err(LabError::doing("writing the inbox row"))
            }

            async fn is_recorded(&self, id: &str) -> Result<bool, LabError> {
                let sql = "SELECT count(*) FROM inbox_messages WHERE consumer_name = $1 AND message_id = $2";
                let found =
                    sqlx::query_scalar(sql).bind(CONSUMER).bind(id).fetch_one(self.store.pool()).await;
                let found: i64 = found.map_err(LabError::doing("looking into the inbox"))?;
                Ok(found > 0)
            }

            async fn write_both(&self, message: &Message) -> Result<bool, LabError> {
                let both = async {
                    let mut transaction = self.store.pool().begin().await?;
                    let record = sqlx::query(RECORD).bind(CONSUMER).bind(id_of(message));
                    if record.execute(&mut *transaction).await?.rows_affected() == 0 {
                        return Ok(false);
                    }
                    effect(&mut transaction, message).await?;
                    transaction.commit().await?;
                    Ok::<_, sqlx::Error>(true)
                };
                both.await.map_err(LabError::doing("writing inbox row and effect"))
            }
        }

        /// What `inventory-service` does: one row.
        struct Business(Journal);

        #[async_trait::async_trait]
        impl Handler<$store> for Business {
            async fn handle(&self, db: &mut $connection, message: &Message) -> Result<Handled, Failure> {
                self.0.handling(message);
                effect(db, message).await?;
                self.0.handled(message);
                Ok(Handled::Applied)
            }
        }

        async fn effect(db: &mut $connection, message: &Message) -> Result<(), sqlx::Error> {
            let sql = "INSERT INTO effects (message_id, order_id) VALUES ($1, $2)";
            let order = message.aggregate_id.as_deref().unwrap_or_default();
            sqlx::query(sql).bind(id_of(message)).bind(order).execute(db).await.map(drop)
        }

        const RECORD: &str = "INSERT INTO inbox_messages (consumer_name, message_id) VALUES ($1, $2)
            ON CONFLICT DO NOTHING";
    };
}

pub(super) use ledger;
