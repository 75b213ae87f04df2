//! What must hold when the faults are over.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::QUEUES;
use super::fleet::Fleet;
use super::load::Load;
use super::world::World;
use crate::queue::Queue;
use crate::until::until;

/// Without any progress, and for what follows the last effect.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn holds(world: &World, fleet: &Fleet, load: &Load) {
    let applied: Vec<_> = load.ids(false).collect();
    println!("soak: logs of the consumers while it runs: {}", fleet.logs().display());
    let start = Instant::now();
    drains(world, fleet, applied.len()).await;
    world.db.has_one_effect_each(&applied, PATIENCE).await;
    println!("soak: all applied after {:.1?}", start.elapsed());
    for queue in QUEUES {
        until(&format!("{queue} is empty"), PATIENCE, || async {
            fleet.mend().await;
            world.rabbitmq.is_empty(queue).await
        })
        .await;
    }
    println!("soak: the queues are empty after {:.1?}", start.elapsed());
    fleet.stop().await;
    // Nothing was applied twice on the last metres either.
    world.db.has_one_effect_each(&applied, Duration::from_secs(1)).await;
    world.db.nothing_is_idle_in_a_transaction().await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(world.db.number(deadlocks).await, 0, "deadlocks since the last crash");

    let wanted: BTreeSet<_> = load.ids(true).collect();
    for queue in &world.queues {
        let parked = letters(world, queue).await;
        let missing: Vec<_> = wanted.difference(&parked).take(5).collect();
        let strange: Vec<_> = parked.difference(&wanted).take(5).collect();
        let name = &queue.subscription.source;
        assert!(
            missing.is_empty() && strange.is_empty(),
            "{name}: not parked {missing:?}, parked {strange:?}"
        );
    }
    let (published, applied, parked) = (load.published(), applied.len(), wanted.len());
    assert_eq!(published, applied + parked);
    fleet.forget_logs();
    println!("soak: {published} published = {applied} applied once + {parked} parked");
}

/// A machine may be slow, but something has to happen.
async fn drains(world: &World, fleet: &Fleet, wanted: usize) {
    let (mut most, mut since) = (0, Instant::now());
    while most < wanted {
        let found = world.applied().await.unwrap_or(0);
        if found > most {
            (most, since) = (found, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "nothing happens any more: {most} of {wanted} applied");
        fleet.mend().await;
        sleep(Duration::from_millis(200)).await;
    }
}

/// The ids of the dead letters, of which there may be copies.
async fn letters(world: &World, queue: &Queue) -> BTreeSet<String> {
    let subscription = queue.subscription.clone().with_prefetch(u16::MAX).expect("not zero");
    let name = queue.broker.dead_letter(&subscription).routing_key;
    let mut source = queue.broker.dead_letters(&subscription).await.expect("the dead letters");
    // Unsettled, they stay where they are.
    let mut seen = Vec::new();
    let depth = world.rabbitmq.depth(&name).await.expect("a queue of dead letters");
    while (seen.len() as u64) < depth {
        let batch = timeout(Duration::from_secs(10), source.recv(usize::MAX)).await;
        seen.extend(batch.expect("all letters come").expect("a batch"));
    }
    let id = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("our own ids");
    seen.iter().map(|letter| id(letter.message.id.as_deref().unwrap_or_default())).collect()
}
