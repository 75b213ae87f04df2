use rustix::process::Signal;

use super::server::{Ports, Server};
use super::{amqp_url_at, management_url_at};
use crate::error::Result;
use crate::services::{Condition, Place, Service};
use crate::wait::Say;

const URL: &str = "AFTERCOMMIT_RABBITMQ_URL";
const MANAGEMENT_URL: &str = "AFTERCOMMIT_RABBITMQ_MANAGEMENT_URL";

/// The RabbitMQ server that all tests share.
#[derive(Debug)]
pub struct Shared;

/// Where tests find the shared server by AMQP: `AFTERCOMMIT_RABBITMQ_URL`, or the port that
/// `cargo xtask services up` uses.
///
/// # Errors
///
/// When `AFTERCOMMIT_PORT_BASE` is no usable number.
pub fn url() -> Result<String> {
    match std::env::var(URL) {
        Ok(url) => Ok(url),
        Err(_) => Ok(amqp_url_at(server(&Place::from_env()?).ports.amqp)),
    }
}

/// Where tests find the shared server's management API, with user and password, without a path:
/// `AFTERCOMMIT_RABBITMQ_MANAGEMENT_URL`, or the port that `cargo xtask services up` uses.
///
/// # Errors
///
/// When `AFTERCOMMIT_PORT_BASE` is no usable number.
pub fn management_url() -> Result<String> {
    match std::env::var(MANAGEMENT_URL) {
        Ok(url) => Ok(url),
        Err(_) => Ok(management_url_at(server(&Place::from_env()?).ports.management)),
    }
}

fn server(place: &Place) -> Server {
    let ports = Ports {
        amqp: place.port(72),
        management: place.port(73),
        distribution: place.port(74),
        epmd: place.port(75),
    };
    let folder = place.folder().join(Shared.name());
    Server { folder, ports, config: String::new() }
}

impl Service for Shared {
    fn name(&self) -> &'static str {
        "rabbitmq"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["rabbitmq-server"]
    }

    fn is_installed(&self) -> bool {
        super::server::is_installed()
    }

    fn condition(&self, place: &Place) -> Condition {
        let server = server(place);
        let Some(process) = server.process() else {
            return Condition::Stopped;
        };
        match server.probe() {
            Ok(()) => Condition::Ready { pid: process.pid() },
            Err(e) => Condition::Unready { pid: process.pid(), why: e.to_string() },
        }
    }

    fn start(&self, place: &Place, say: Say<'_>) -> Result<()> {
        server(place).start(say)
    }

    fn stop(&self, place: &Place) -> Result<bool> {
        let server = server(place);
        let ran = server.process().is_some();
        server.stop(Signal::TERM)?;
        server.stop_epmd()?;
        Ok(ran)
    }

    fn variables(&self, place: &Place) -> Vec<(&'static str, String)> {
        let ports = server(place).ports;
        vec![(URL, amqp_url_at(ports.amqp)), (MANAGEMENT_URL, management_url_at(ports.management))]
    }
}
