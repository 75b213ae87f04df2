use std::collections::HashSet;

use futures_util::future::try_join_all;
use lapin::message::Delivery;
use lapin::options::BasicAckOptions;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::single::id;
use super::sql::{CLAIM, EFFECTS, PROVE};
use super::{CONSUMER, Safety, Worker};
use crate::arena::sent_at;
use crate::error::{Error, Result};

impl Worker {
    /// One transaction for up to `max` messages with set-based statements, then an ack for each.
    pub(super) async fn batches(mut self, max: usize) -> Result<()> {
        loop {
            let deliveries = self.receive(max).await?;
            if deliveries.is_empty() {
                return Ok(());
            }
            self.apply_all(&deliveries).await?;
            try_join_all(deliveries.iter().map(|delivery| self.confirm(delivery))).await?;
        }
    }

    async fn confirm(&self, delivery: &Delivery) -> Result<()> {
        if !delivery.ack(BasicAckOptions::default()).await? {
            return Err(Error::new("not acknowledged"));
        }
        self.meter.confirmed(sent_at(&delivery.data));
        Ok(())
    }

    async fn apply_all(&mut self, deliveries: &[Delivery]) -> Result<()> {
        let mut all = deliveries.iter().map(id).collect::<Result<Vec<_>>>()?;
        all.sort_unstable();
        let mut transaction = self.database.begin_with(self.safety.begin()).await?;
        let claimed: Vec<String> =
            sqlx::query_scalar(CLAIM).bind(CONSUMER).bind(&all).fetch_all(&mut *transaction).await?;
        let ours: HashSet<&str> = claimed.iter().map(String::as_str).collect();
        let (mut ids, mut bodies) = (Vec::with_capacity(ours.len()), Vec::with_capacity(ours.len()));
        for delivery in deliveries {
            let id = id(delivery)?;
            if ours.contains(id) {
                ids.push(id);
                bodies.push(delivery.data.as_slice());
            }
        }
        if ids.is_empty() {
            return Ok(transaction.rollback().await?);
        }
        sqlx::query(EFFECTS).bind(&ids).bind(&bodies).execute(&mut *transaction).await?;
        ids.sort_unstable();
        self.safety.prove(&mut transaction, &ids).await?;
        Ok(transaction.commit().await?)
    }
}

impl Safety {
    /// The last statement before COMMIT.
    pub(super) async fn prove(self, database: &mut PgConnection, ids: &[&str]) -> Result<()> {
        if self == Self::None {
            return Ok(());
        }
        let (begun, missing, vanishing): (bool, i64, bool) =
            sqlx::query_as(PROVE).bind(CONSUMER).bind(ids).fetch_one(database).await?;
        if !begun || missing != 0 || vanishing {
            return Err(Error::new("the transaction is not what it was"));
        }
        Ok(())
    }
}
