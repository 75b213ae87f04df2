//! From settings to running tasks.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{
    Broker, BrokerError, ConsumerName, Finding, MessageId, Severity, Signal, Subscription,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::consumer::Consumer;
use crate::dispatch::Dispatch;
use crate::error::ConsumerError;
use crate::health::{Busy, Health};
use crate::lane::Lane;
use crate::measures::Measures;
use crate::pause::Gate;
use crate::running::{Died, Parts, Running};
use crate::settings::Settings;
use crate::settle::{Forget, Settler};
use crate::store::{InboxStore, Session as _};
use crate::waiting::Waiting;

pub(crate) async fn start<S: InboxStore>(
    consumer: Consumer<S>,
    broker: Arc<dyn Broker>,
    mut subscription: Subscription,
) -> Result<Running, ConsumerError> {
    let Consumer { store, work, settings } = consumer;
    let sizes = settings.sizes(store.max_sessions(), subscription.prefetch)?;
    subscription.prefetch = Some(sizes.prefetch);
    store.check().await?;
    let topology = Signal::new("topology", "not checked yet");
    look(&*broker, &subscription, &topology).await.map_err(|error| match error {
        Looked::Failed(error) => ConsumerError::Broker(error),
        Looked::Refused(findings) => ConsumerError::Topology(findings),
    })?;
    let publisher = broker.publisher().await?;
    let source = broker.source(&subscription).await?;
    let capabilities = source.capabilities();
    let longest_delay = capabilities.delay.longest();
    let waiting = Waiting::new(&capabilities);
    warn_of_shortened_delays(&settings, longest_delay);

    let stop = CancellationToken::new();
    let ended = CancellationToken::new();
    let gate = Gate::new("database");
    let name = subscription.consumer.clone();
    let metrics = Measures::new(&name, broker.product());
    let forget = forget(Arc::clone(&store), name.clone());
    let dead_letter = broker.dead_letter(&subscription);
    let settler =
        Settler::new(publisher, dead_letter, metrics.clone(), stop.clone(), forget, waiting.clone());
    let dispatch = Arc::new(Dispatch::new(sizes.lanes));
    let busy: Vec<Busy> = (0..sizes.lanes).map(|_| Busy::default()).collect();
    let health = Health {
        signals: vec![source.health(), gate.signal(), settler.signal(), topology.clone()],
        lanes: busy.clone(),
        waiting: waiting.clone(),
        stuck_after: settings.stuck_after,
        stop: stop.clone(),
        ended: ended.clone(),
    };

    let settings = Arc::new(settings);
    let lanes = TaskTracker::new();
    let died = Died::new(stop.clone());
    let mut ready = Vec::with_capacity(sizes.lanes);
    for (index, busy) in busy.into_iter().enumerate() {
        // Opened now, so that a pool that cannot give so many says so at the start.
        let seat = Some(store.open().await?);
        let lane = Lane {
            index,
            store: Arc::clone(&store),
            work: Arc::clone(&work),
            consumer: name.clone(),
            settings: Arc::clone(&settings),
            longest_delay,
            metrics: metrics.clone(),
            gate: gate.clone(),
            stop: stop.clone(),
            seat,
            strikes: 0,
            paused: None,
            settler: settler.clone(),
            busy,
        };
        ready.push(lane);
    }
    for lane in ready {
        let (dispatch, watch) = (Arc::clone(&dispatch), died.watch());
        lanes.spawn(async move {
            lane.run(dispatch).await;
            watch.ended_well();
        });
    }
    lanes.close();
    tokio::spawn(keep_looking(broker, subscription, topology, settings.check_every, stop.clone()));
    tracing::info!(
        consumer = %name, lanes = sizes.lanes, max_batch = settings.max_batch, prefetch = sizes.prefetch,
        "the consumer is running"
    );
    let shutdown = settings.shutdown;
    let parts =
        Parts { source, dispatch, lanes, settler, gate, metrics, died, waiting, stop, ended, shutdown };
    Ok(Running::new(parts, health, usize::from(sizes.prefetch)))
}

fn warn_of_shortened_delays(settings: &Settings, longest: Duration) {
    let wanted = settings.retry.delays().iter().max().copied().unwrap_or_default();
    if wanted > longest {
        tracing::warn!(
            ?wanted,
            ?longest,
            "the broker cannot hold a failing message as long as the retry policy says: it comes back earlier"
        );
    }
}

/// Forgetting needs a connection, but no lane's: this runs after settling, and holds none yet.
fn forget<S: InboxStore>(store: Arc<S>, consumer: ConsumerName) -> Forget {
    // One at a time: a stream of poison must not take the application's connections.
    let turn = Arc::new(tokio::sync::Mutex::new(()));
    Arc::new(move |id: MessageId| {
        let (store, consumer, turn) = (Arc::clone(&store), consumer.clone(), Arc::clone(&turn));
        Box::pin(async move {
            let _turn = turn.lock().await;
            let forgotten = match store.open().await {
                Ok(mut session) => session.forget_attempts(&consumer, &id).await,
                Err(error) => Err(error),
            };
            if let Err(error) = forgotten {
                // A replay starts with used-up attempts then, and resets them itself.
                tracing::warn!(message_id = %id, error = %error, "parked, but its attempts are not forgotten");
            }
        })
    })
}

/// How long a check of the topology may take.
const CHECK_WITHIN: Duration = Duration::from_secs(30);

fn unanswered(broker: &dyn Broker) -> BrokerError {
    BrokerError::Backend {
        product: broker.product(),
        action: "check the topology",
        source: format!("no answer within {CHECK_WITHIN:?}").into(),
    }
}

enum Looked {
    Failed(BrokerError),
    Refused(Vec<Finding>),
}

async fn look(broker: &dyn Broker, subscription: &Subscription, topology: &Signal) -> Result<(), Looked> {
    let checked = tokio::time::timeout(CHECK_WITHIN, broker.check(subscription)).await;
    let findings = checked.unwrap_or_else(|_| Err(unanswered(broker))).map_err(Looked::Failed)?;
    let (refused, warned): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.severity == Severity::Refuse);
    for finding in &warned {
        tracing::warn!(consumer = %subscription.consumer, "{finding}");
    }
    match refused.first() {
        None => topology.set_up(),
        Some(finding) => {
            topology.set_down(finding.to_string());
            return Err(Looked::Refused(refused));
        }
    }
    Ok(())
}

/// Somebody may delete a binding while we run. That is an alarm and "not ready"; consumption goes
/// on, since what still arrives is handled correctly.
async fn keep_looking(
    broker: Arc<dyn Broker>,
    subscription: Subscription,
    topology: Signal,
    every: Duration,
    stop: CancellationToken,
) {
    while stop.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
        match look(&*broker, &subscription, &topology).await {
            Ok(()) => {}
            Err(Looked::Refused(findings)) => {
                for finding in findings {
                    tracing::error!(consumer = %subscription.consumer, "the topology breaks the promise: {finding}");
                }
            }
            // An unreachable broker is the source's to report.
            Err(Looked::Failed(error)) => {
                tracing::warn!(consumer = %subscription.consumer, error = %error, "the topology could not be checked");
            }
        }
    }
}
