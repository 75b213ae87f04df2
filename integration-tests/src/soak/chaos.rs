//! What is done to processes, connections and servers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use xtask::services::postgres::Shutdown;

use super::fleet::Fleet;
use super::world::World;

#[derive(Clone)]
pub(super) struct Chaos {
    seed: u64,
    world: Arc<World>,
    fleet: Arc<Fleet>,
    stop: CancellationToken,
    done: Arc<[AtomicUsize; NAMES.len()]>,
}

const NAMES: [&str; 8] = [
    "kills",
    "freezes",
    "cut from RabbitMQ",
    "cut from PostgreSQL",
    "ended backends",
    "silences",
    "PostgreSQL restarts",
    "RabbitMQ restarts",
];

/// Over within seconds, and many of them.
#[derive(Clone, Copy)]
enum Small {
    Kill,
    Freeze,
    CutRabbitMq,
    CutPostgres,
    EndBackends,
    Silence,
}

#[derive(Clone, Copy)]
enum Large {
    StopPostgres(Shutdown),
    KillPostgres,
    StopRabbitMq,
    KillRabbitMq,
}

const SMALL: [Small; 10] = [
    Small::Kill,
    Small::Kill,
    Small::Kill,
    Small::Freeze,
    Small::Freeze,
    Small::CutRabbitMq,
    Small::CutRabbitMq,
    Small::CutPostgres,
    Small::EndBackends,
    Small::Silence,
];
const LARGE: [Large; 5] = [
    Large::StopPostgres(Shutdown::Fast),
    Large::StopPostgres(Shutdown::Immediate),
    Large::KillPostgres,
    Large::StopRabbitMq,
    Large::KillRabbitMq,
];

impl Chaos {
    pub(super) fn new(seed: u64, world: Arc<World>, fleet: Arc<Fleet>, stop: CancellationToken) -> Self {
        Self { seed, world, fleet, stop, done: Arc::default() }
    }

    /// Each fault of the deck in a random order, again and again.
    pub(super) async fn small(self) {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut deck = Vec::new();
        while self.waits(rng.random_range(100..1200)).await {
            let fault = draw(&mut deck, &SMALL, &mut rng);
            self.do_small(fault, &mut rng).await;
            self.fleet.mend().await;
        }
    }

    pub(super) async fn large(self) {
        let mut rng = StdRng::seed_from_u64(self.seed.wrapping_add(1));
        let mut deck = Vec::new();
        while self.waits(rng.random_range(2000..8000)).await {
            let fault = draw(&mut deck, &LARGE, &mut rng);
            self.do_large(fault, rng.random_range(0..3000)).await;
        }
    }

    /// `false`: it is over.
    async fn waits(&self, milliseconds: u64) -> bool {
        self.stop.run_until_cancelled(sleep(Duration::from_millis(milliseconds))).await.is_some()
    }

    async fn do_small(&self, fault: Small, rng: &mut StdRng) {
        let number = rng.random_range(0..self.fleet.len());
        let time = Duration::from_millis(rng.random_range(200..4000));
        let (rabbitmq, postgres) = (&self.world.before_rabbitmq, &self.world.before_postgres);
        match fault {
            Small::Kill => self.fleet.kill(number).await,
            Small::Freeze => self.fleet.freeze(number, time).await,
            Small::CutRabbitMq => rabbitmq.cut(),
            Small::CutPostgres => postgres.cut(),
            Small::EndBackends => {
                // Refused while the server is away, which is as good.
                let schema = self.world.db.schema().to_owned();
                let sql = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}'"
                );
                let node = self.world.postgres.clone();
                let _ = tokio::task::spawn_blocking(move || node.sql(&sql)).await;
            }
            Small::Silence => {
                for proxy in [rabbitmq, postgres] {
                    proxy.blackhole();
                }
                sleep(time / 2).await;
                for proxy in [rabbitmq, postgres] {
                    proxy.end_blackhole();
                    proxy.cut();
                }
            }
        }
        self.count(fault as usize);
    }

    async fn do_large(&self, fault: Large, away: u64) {
        let (postgres, rabbitmq) = (&self.world.postgres, &self.world.rabbitmq);
        match fault {
            Large::StopPostgres(how) => postgres.does(move |node| node.stop(how)).await,
            Large::KillPostgres => postgres.does(|node| node.kill()).await,
            Large::StopRabbitMq => rabbitmq.does(|node| node.stop()).await,
            Large::KillRabbitMq => rabbitmq.does(|node| node.kill()).await,
        }
        sleep(Duration::from_millis(away)).await;
        match fault {
            Large::StopPostgres(_) | Large::KillPostgres => {
                postgres.does(|node| node.start_again()).await;
                self.count(6);
            }
            Large::StopRabbitMq | Large::KillRabbitMq => {
                rabbitmq.does(|node| node.start_again()).await;
                self.count(7);
            }
        }
    }

    /// Whether each kind of fault was there at least once.
    pub(super) fn has_done_everything(&self) -> bool {
        self.done.iter().all(|done| done.load(Ordering::SeqCst) > 0)
    }

    fn count(&self, which: usize) {
        self.done[which].fetch_add(1, Ordering::SeqCst);
    }
}

fn draw<T: Copy>(deck: &mut Vec<T>, whole: &[T], rng: &mut StdRng) -> T {
    if deck.is_empty() {
        deck.extend_from_slice(whole);
        deck.shuffle(rng);
    }
    deck.pop().expect("it was filled")
}

impl fmt::Display for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, done)) in NAMES.iter().zip(self.done.iter()).enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{} {name}", done.load(Ordering::SeqCst))?;
        }
        Ok(())
    }
}
