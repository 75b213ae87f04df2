use std::sync::Arc;

use aftercommit::connect;
use aftercommit_conformance::faults::{Fault, Script, Seam, Side};

use super::assignment::{Consume, Method};
use super::broker::LabBroker;
use super::journal::Journal;
use super::{HALTED, naive};
use crate::plan::{Crash, CrashAt};
use crate::site::Site;
use crate::{LabError, database};

/// Consumes until it is told to stop, or until the point where it dies.
pub(super) async fn run(
    site: &Site,
    part: Consume,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), LabError> {
    let ledger = database::open(site).await?;
    let journal = Journal::new(site, Some(Arc::clone(&ledger)));
    let broker = connect(&site.broker).await.map_err(LabError::doing("connecting the consumer"))?;
    let subscription = site.subscription().and_then(|subscription| subscription.with_prefetch(part.prefetch));
    let subscription = subscription.map_err(LabError::doing("naming the queue"))?;
    if part.method != Method::Inbox {
        let source = broker.source(&subscription).await.map_err(LabError::doing("subscribing"))?;
        let Consume { method, crash, spared, .. } = part;
        let naive = naive::Naive { ledger, journal, method, crash, spared };
        return naive.run(source, stop).await;
    }
    let script = part.crash.map_or_else(Script::record, script);
    let broker = Arc::new(LabBroker { inner: broker, journal: journal.clone(), script: script.clone() });
    let starting = ledger.start(broker, subscription, journal.clone(), script.clone());
    let running = starting.await.map_err(LabError::doing("starting the consumer"))?;
    tokio::select! {
        ended = running.until(stop) => ended.map_err(LabError::doing("consuming")),
        _ = script.crashed() => die(&journal),
    }
}

fn script(crash: Crash) -> Script {
    let (seam, side) = match crash.at {
        CrashAt::BeforeConfirm => (Seam::Ack, Side::Before),
        CrashAt::InHandler => (Seam::Handle, Side::After),
    };
    Script::record().at(seam, side, crash.nth, Fault::Crash)
}

/// Nothing is finished, given back or closed.
#[expect(clippy::exit, reason = "to die is what this process was started for")]
pub(super) fn die(journal: &Journal) -> ! {
    journal.crashing();
    std::process::exit(HALTED.into())
}
