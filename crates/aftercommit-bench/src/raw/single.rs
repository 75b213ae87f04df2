use lapin::message::Delivery;
use lapin::options::BasicAckOptions;
use sqlx::Connection as _;

use super::sql::{CLAIM, EFFECT};
use super::{CONSUMER, Worker};
use crate::arena::sent_at;
use crate::error::{Error, Result};

impl Worker {
    /// One message per transaction, confirmed before the next is taken.
    pub(super) async fn singles(mut self) -> Result<()> {
        while let Some(delivery) = self.receive(1).await?.pop() {
            self.apply(&delivery).await?;
            if !delivery.ack(BasicAckOptions::default()).await? {
                return Err(Error::new("not acknowledged"));
            }
            self.meter.confirmed(sent_at(&delivery.data));
        }
        Ok(())
    }

    async fn apply(&mut self, delivery: &Delivery) -> Result<()> {
        let id = id(delivery)?;
        let mut transaction = self.database.begin_with(self.safety.begin()).await?;
        let claimed: Vec<String> =
            sqlx::query_scalar(CLAIM).bind(CONSUMER).bind(&[id][..]).fetch_all(&mut *transaction).await?;
        if claimed.is_empty() {
            return Ok(transaction.rollback().await?);
        }
        sqlx::query(EFFECT).bind(id).bind(delivery.data.as_slice()).execute(&mut *transaction).await?;
        self.safety.prove(&mut transaction, &[id]).await?;
        Ok(transaction.commit().await?)
    }
}

pub(super) fn id(delivery: &Delivery) -> Result<&str> {
    let id =
        delivery.properties.message_id().as_ref().ok_or_else(|| Error::new("a message without an id"))?;
    Ok(id.as_str())
}
