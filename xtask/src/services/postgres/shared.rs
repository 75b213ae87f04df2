use super::server::Server;
use super::url_at;
use crate::error::Result;
use crate::services::{Condition, Place, Service};
use crate::wait::Say;

const URL: &str = "AFTERCOMMIT_POSTGRES_URL";

/// The PostgreSQL server that all tests share.
#[derive(Debug)]
pub struct Shared;

/// Where tests find the shared server: `AFTERCOMMIT_POSTGRES_URL`, or the port that `cargo xtask services up` uses.
///
/// # Errors
///
/// When `AFTERCOMMIT_PORT_BASE` is no usable number.
pub fn url() -> Result<String> {
    match std::env::var(URL) {
        Ok(url) => Ok(url),
        Err(_) => Ok(url_at(server(&Place::from_env()?).port)),
    }
}

fn server(place: &Place) -> Server {
    Server {
        folder: place.folder().join(Shared.name()),
        port: place.port(32),
        // As on a production server: whoever measures on it must not measure a COMMIT that can vanish.
        config: "max_connections = 300\nshared_buffers = 256MB\nmax_wal_size = 2GB\n".to_owned(),
    }
}

impl Service for Shared {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["postgresql"]
    }

    fn is_installed(&self) -> bool {
        super::server::programs().is_ok()
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
        server.stop(rustix::process::Signal::INT)?;
        Ok(ran)
    }

    fn variables(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![(URL, url_at(server(place).port))]
    }
}
