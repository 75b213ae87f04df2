//! The places of one run: made before it, looked at during it, removed after it.

mod act;

use std::sync::Arc;
use std::time::Duration;

use aftercommit::core::BrokerError;
use aftercommit::{ConnectError, connect};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::database::{self, Ledger};
use crate::product::{self, Outside};
use crate::site::Site;
use crate::{LabError, Program, Watch};

/// How long removing may take.
const REMOVAL: Duration = Duration::from_secs(20);

/// One run.
pub(crate) struct Stage<'a> {
    pub(crate) site: Site,
    pub(crate) program: Program,
    pub(crate) watch: &'a dyn Watch,
    folder: Option<TempDir>,
    outside: Option<Box<dyn Outside>>,
    ledger: Option<Arc<dyn Ledger>>,
}

/// What a run is made of.
pub(crate) struct Places {
    pub(crate) lab: &'static str,
    pub(crate) destination: &'static str,
    pub(crate) broker: String,
    pub(crate) database: String,
}

impl<'a> Stage<'a> {
    /// Chooses names. Nothing is made yet but a folder for files.
    pub(crate) fn new(places: Places, program: Program, watch: &'a dyn Watch) -> Result<Self, LabError> {
        let product = product::of_url(&places.broker)?;
        let folder = tempfile::Builder::new().prefix("aftercommit-").tempdir();
        let folder = folder.map_err(LabError::doing(
            "making a folder for temporary files, in the place that TMPDIR names",
        ))?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let database = match database::of_url(&places.database)? {
            "sqlite" => {
                nothing_behind(&places.database, "sqlite:")?;
                format!("sqlite:{}", file("inventory.db"))
            }
            _ => places.database,
        };
        let broker = match product {
            "sqlqueue" => {
                nothing_behind(&places.broker, "sqlqueue:")?;
                let path = file("queue.db").replace('%', "%25").replace('?', "%3f");
                // What a dead consumer held comes again after so many seconds.
                format!("sqlqueue:{path}?visibility=1")
            }
            _ => places.broker,
        };
        let site = Site {
            lab: places.lab.to_owned(),
            product: product.to_owned(),
            broker,
            database,
            destination: places.destination.to_owned(),
            run: uuid::Uuid::new_v4().simple().to_string()[..12].to_owned(),
        };
        Ok(Self { site, program, watch, folder: Some(folder), outside: None, ledger: None })
    }

    /// Makes queue and tables.
    ///
    /// A dropped future has made a part of it; [`tear_down`](Self::tear_down) removes that too.
    pub(crate) async fn set_up(&mut self) -> Result<(), LabError> {
        let what = "the broker cannot be used";
        let broker = connect(&self.site.broker).await.map_err(|error| match error {
            ConnectError::Broker(away @ BrokerError::Unreachable { .. }) => {
                LabError::Away { what: what.to_owned(), source: Some(away.into()) }
            }
            error => LabError::doing(what)(error),
        })?;
        self.outside = Some(product::outside(&self.site).await?);
        let ledger = database::open(&self.site).await?;
        self.ledger = Some(Arc::clone(&ledger));
        let subscription = self.site.subscription().map_err(LabError::doing("naming the queue"))?;
        broker.declare(&subscription).await.map_err(LabError::doing(what))?;
        ledger.create().await
    }

    pub(crate) fn outside(&self) -> Result<&dyn Outside, LabError> {
        self.outside.as_deref().ok_or_else(|| LabError::failed("the run was not set up"))
    }

    pub(crate) fn ledger(&self) -> Result<&dyn Ledger, LabError> {
        self.ledger.as_deref().ok_or_else(|| LabError::failed("the run was not set up"))
    }

    /// Runs what is to be done here, unless somebody interrupts it, and removes everything afterwards, whatever came
    /// of it. What could not be removed is told, and is an error if there is no other.
    pub(crate) async fn run<T>(
        mut self,
        act: impl AsyncFnOnce(&Self) -> Result<T, LabError>,
        interrupted: impl Future<Output = ()>,
    ) -> Result<T, LabError> {
        let acted = tokio::select! {
            biased;
            () = interrupted => Err(LabError::Interrupted),
            acted = async {
                self.set_up().await?;
                act(&self).await
            } => acted,
        };
        let removed = self.tear_down().await;
        if let Err(error) = &removed {
            self.watch.step(&format!("left behind: {}", aftercommit::core::chain(error)));
        }
        acted.and_then(|acted| removed.map(|()| acted))
    }

    async fn tear_down(&mut self) -> Result<(), LabError> {
        let (outside, ledger, folder) = (self.outside.take(), self.ledger.take(), self.folder.take());
        let removing = async {
            let broker = match outside {
                Some(outside) => outside.remove().await,
                None => Ok(()),
            };
            let database = match ledger {
                Some(ledger) => ledger.remove().await,
                None => Ok(()),
            };
            let files = folder.map_or(Ok(()), TempDir::close);
            broker.and(database).and(files.map_err(LabError::doing("removing the folder of temporary files")))
        };
        let late = |_| LabError::failed(format!("removing the run's queue and tables took over {REMOVAL:?}"));
        timeout(REMOVAL, removing).await.map_err(late)?
    }
}

/// A run makes a file of its own: one of somebody's would be left with what the run wrote.
fn nothing_behind(url: &str, scheme: &str) -> Result<(), LabError> {
    if url == scheme {
        return Ok(());
    }
    Err(LabError::Usage(format!(
        "each run has a file of its own in a temporary folder: write {scheme} without a path"
    )))
}
