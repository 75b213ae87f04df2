//! Minutes of random kills and outages under load.
//!
//! A publisher publishes with confirms to two queues of one consumer: each batch of ids to the first in order, to the
//! second in reverse, so that two batches with the same ids in opposite order are always in parallel. Four consumer
//! processes handle them behind a proxy before RabbitMQ and one before PostgreSQL. All the while processes are killed
//! and frozen, connections cut, servers restarted and killed. In the end everything is drained, and every published id
//! has exactly one effect or is a dead letter.
//!
//! The seed determines what is done in which order, not what the machine makes of it.

mod chaos;
pub mod consumer;
mod fleet;
mod load;
mod verdict;
mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use fleet::Fleet;
use load::Load;
use world::World;

/// The consumer's name.
const CONSUMER: &str = "soak";
/// The queues: ids come in order on the first, in reverse on the second.
const QUEUES: [&str; 2] = ["soak.forwards", "soak.backwards"];

/// What a soak does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long faults go on, at least until there was one of each kind; starting and draining come on top.
    pub faults: Duration,
    /// Determines the faults.
    pub seed: u64,
    /// The program whose `consumer` mode is the consumer process.
    pub program: PathBuf,
}

/// Runs a soak to its end.
///
/// # Panics
///
/// When a promise was broken, or a server cannot be started.
///
/// # Cancel safety
///
/// Dropping the future ends the servers and the processes.
pub async fn run(plan: Plan) {
    println!("soak: seed {}, faults for {:?}", plan.seed, plan.faults);
    let world = Arc::new(World::start().await);
    let fleet = Arc::new(Fleet::start(&plan.program, &world).await);
    let load = Arc::new(Load::default());
    let stop = CancellationToken::new();

    let publishing = tokio::spawn(load::publish(Arc::clone(&load), Arc::clone(&world), stop.clone()));
    let chaos = chaos::Chaos::new(plan.seed, Arc::clone(&world), Arc::clone(&fleet), stop.clone());
    let tracks = [tokio::spawn(chaos.clone().small()), tokio::spawn(chaos.clone().large())];
    let end = Instant::now() + plan.faults;
    let mut every = interval(Duration::from_secs(3));
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end || !chaos.has_done_everything() {
        every.tick().await;
        let applied = world.applied().await;
        applied.into_iter().for_each(|count| load.note_applied(count));
        let applied = applied.map_or("?".to_owned(), |count| count.to_string());
        println!("soak: published {}, applied {applied}, {chaos}", load.published());
    }
    stop.cancel();
    for track in tracks {
        track.await.expect("faults that can be made");
    }
    publishing.await.expect("publishing goes on until all is confirmed");
    println!("soak: faults end ({chaos}), {} published; draining", load.published());
    verdict::holds(&world, &fleet, &load).await;
}
