//! The shared servers: up, down, status.

use std::time::Instant;

use super::{Place, postgres, rabbitmq};
use crate::error::{Error, Result};
use crate::wait::Say;

/// A server that `cargo xtask services` can start. One file implements it per product.
pub trait Service: Sync {
    /// The name on the command line, which is also the folder's.
    fn name(&self) -> &'static str;
    /// The Debian packages that bring it.
    fn packages(&self) -> &'static [&'static str];
    /// Whether the server's program is on this machine.
    fn is_installed(&self) -> bool;
    /// What it is at the moment.
    fn condition(&self, place: &Place) -> Condition;
    /// Starts it and waits until it serves; does nothing but that wait when it runs already.
    ///
    /// # Errors
    ///
    /// When it is not installed, a port is taken, or it is not ready in time (with the end of its log).
    fn start(&self, place: &Place, say: Say<'_>) -> Result<()>;
    /// Stops what `start` started; `false` when nothing ran.
    ///
    /// # Errors
    ///
    /// When a process cannot be ended.
    fn stop(&self, place: &Place) -> Result<bool>;
    /// The environment variables by which tests find it; the first one set means: a server from elsewhere is used.
    fn variables(&self, place: &Place) -> Vec<(&'static str, String)>;
}

/// What a shared server is at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It answers.
    Ready {
        /// Its process.
        pid: i32,
    },
    /// Its process runs and does not answer (yet).
    Unready {
        /// Its process.
        pid: i32,
        /// What the probe found.
        why: String,
    },
    /// No process of ours.
    Stopped,
}

/// All servers there are, in the order of starting.
pub const ALL: &[&dyn Service] = &[&postgres::Shared, &rabbitmq::Shared];

/// The services with these names; all when none is named.
///
/// # Errors
///
/// When there is no such service.
pub fn named(names: &[String]) -> Result<Vec<&'static dyn Service>> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    names.iter().map(|name| one(name)).collect()
}

fn one(name: &str) -> Result<&'static dyn Service> {
    let known = || ALL.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ");
    ALL.iter()
        .find(|s| s.name() == name)
        .copied()
        .ok_or_else(|| Error::new(format!("no service {name}; there are: {}", known())))
}

/// Starts the services and waits until they serve, telling progress on standard output.
///
/// # Errors
///
/// As [`Service::start`]; the first failure ends it.
pub fn up(place: &Place, services: &[&dyn Service]) -> Result<()> {
    let _lock = place.lock()?;
    for service in services {
        let name = service.name();
        if let Condition::Ready { pid } = service.condition(place) {
            println!("{name}: already running (pid {pid})");
            continue;
        }
        println!("{name}: starting in {}", place.folder().join(name).display());
        let start = Instant::now();
        service.start(place, &|progress| println!("{name}: {progress}"))?;
        println!("{name}: ready after {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Stops the services, the last one first.
///
/// # Errors
///
/// As [`Service::stop`].
pub fn down(place: &Place, services: &[&dyn Service]) -> Result<()> {
    let _lock = place.lock()?;
    for service in services.iter().rev() {
        let was = if service.stop(place)? { "stopped" } else { "was not running" };
        println!("{}: {was}", service.name());
    }
    Ok(())
}

/// Prints a line per service; whether all are ready.
#[must_use]
pub fn status(place: &Place, services: &[&dyn Service]) -> bool {
    println!("ports from {}, folder {}", place.base(), place.folder().display());
    let mut all = true;
    for service in services {
        let condition = service.condition(place);
        all &= matches!(condition, Condition::Ready { .. });
        let text = match condition {
            Condition::Ready { pid } => format!("ready (pid {pid})"),
            Condition::Unready { pid, why } => format!("running (pid {pid}), not ready: {why}"),
            Condition::Stopped => "stopped".to_owned(),
        };
        println!("{:10} {text}", service.name());
        for (name, value) in service.variables(place) {
            println!("{:10} {name}={value}", "");
        }
    }
    all
}

/// The variables of the services, as tests get them: what the environment says already is kept.
#[must_use]
pub fn variables(place: &Place, services: &[&dyn Service]) -> Vec<(&'static str, String)> {
    let kept = |(name, default): (&'static str, String)| (name, std::env::var(name).unwrap_or(default));
    services.iter().flat_map(|s| s.variables(place)).map(kept).collect()
}
