//! What a product gives to the suite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use aftercommit_core::BoxError;

use super::stage::Stage;

/// Something that not every product, or not every fixture, can do. A trial names what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ability {
    /// The source keeps an order ([`Order`](aftercommit_core::Order)).
    Order,
    /// A source can be read by several processes that share its messages.
    SharedSource,
    /// Several sources can each get a copy of what is published to one destination.
    Copies,
    /// [`Stage::cut`].
    Cut,
    /// [`Stage::take_down`] and [`Stage::bring_up`].
    Outage,
    /// [`Stage::restart`]. Trials that need it run alone.
    Restart,
    /// [`Stage::stall`] and [`Stage::go_on`].
    Stall,
    /// There are destinations that exist and lead nowhere ([`Stage::unroutable`]).
    Unroutable,
    /// A destination can be missing ([`Stage::missing`]).
    Missing,
    /// A destination can refuse because it is full ([`Stage::full`]).
    Full,
    /// There is a limit to a message's size ([`Stage::too_large`]).
    SizeLimit,
    /// A body can be absent, which is not the same as empty.
    AbsentBody,
    /// The product has native properties beside the envelope ([`Stage::native`]).
    NativeProperties,
    /// A header's name can occur more than once.
    RepeatedHeaders,
    /// A source can exist with other settings ([`Stage::occupy`]).
    OtherSettings,
    /// [`Stage::remove`] for the source, and the source can be made again.
    RemovedSource,
    /// [`Stage::remove`] for the dead-letter destination.
    RemovedDeadLetter,
    /// [`Stage::remove`] for a route.
    RemovedRoute,
    /// A source can have a limit that drops messages ([`Stage::limit`]).
    DroppingLimit,
}

/// One product, as the suite sees it: it sets up a stage for each trial.
#[async_trait]
pub trait BrokerFixture: Send + Sync + 'static {
    /// The product's name, as [`Broker::product`](aftercommit_core::Broker::product) says it.
    fn product(&self) -> &'static str;

    /// Sets up a stage of its own for one trial: names that no other trial and no earlier run
    /// uses, connections that can be cut without hurting another trial.
    ///
    /// # Errors
    /// When the server is not there: say which, and how to start it. The trial fails.
    ///
    /// # Cancel safety
    /// A dropped future may leave things at the server.
    async fn stage(&self, trial: &str) -> Result<Arc<dyn Stage>, BoxError>;

    /// What this product or this fixture lacks, each with its reason. Trials that need it are listed
    /// as absent.
    fn absent(&self) -> Vec<(Ability, &'static str)> {
        Vec::new()
    }

    /// How long one trial may take in all.
    fn deadline(&self) -> Duration {
        Duration::from_secs(120)
    }
}
