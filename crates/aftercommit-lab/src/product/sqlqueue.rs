//! A queue in an SQLite file, which is the run's own and goes with the run's folder.

use aftercommit::sqlqueue::{Config, SqlQueue};
use async_trait::async_trait;

use super::{Outside, Sight};
use crate::LabError;
use crate::site::Site;

pub(super) struct File {
    queue: SqlQueue,
    name: String,
}

impl File {
    pub(super) async fn open(site: &Site) -> Result<Self, LabError> {
        let what = "opening the queue's file for the view from outside";
        let config = Config::new(&site.broker).map_err(LabError::doing(what))?;
        let queue = SqlQueue::connect(config).await.map_err(LabError::doing(what))?;
        Ok(Self { queue, name: site.queue() })
    }
}

#[async_trait]
impl Outside for File {
    async fn version(&self) -> String {
        format!("{}, in this program", env!("CARGO_PKG_VERSION"))
    }

    async fn look(&self) -> Result<Sight, LabError> {
        let what = format!("asking the queue's file how many messages are in {}", self.name);
        let depth = self.queue.depth(&self.name).await.map_err(LabError::doing(what))?;
        Ok(Sight { ready: depth.ready, held: depth.waiting + depth.unsettled > 0 })
    }

    async fn remove(&self) -> Result<(), LabError> {
        Ok(())
    }
}
