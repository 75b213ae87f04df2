//! Ports: who holds one, and free ones for private nodes.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::PathBuf;

use crate::error::{Doing, Error, Result};

/// Below the range from which the kernel takes the ports of outgoing connections. A port inside it is lost while its
/// server is down for a restart, and a client that retries the connection can even connect to itself.
const PRIVATE: std::ops::Range<u16> = 26_000..32_000;

/// A port of 127.0.0.1 that stays ours, against other test processes too, until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    port: u16,
    _lock: File,
}

impl Reserved {
    /// The port.
    #[must_use]
    pub const fn get(&self) -> u16 {
        self.port
    }
}

/// Reserves a free port for a server that a test starts and stops.
///
/// # Errors
///
/// When none is free, or the folder of the reservations cannot be written.
pub fn reserve() -> Result<Reserved> {
    let folder = reservations()?;
    let size = PRIVATE.end - PRIVATE.start;
    // Processes start at different places, only to find a free one sooner.
    let first = u16::try_from(std::process::id() % u32::from(size)).unwrap_or(0).wrapping_mul(7) % size;
    for step in 0..size {
        let port = PRIVATE.start + (first + step) % size;
        if let Some(reserved) = try_reserve(port, &folder)? {
            return Ok(reserved);
        }
    }
    Err(Error::new(format!("no free port between {} and {}", PRIVATE.start, PRIVATE.end)))
}

fn try_reserve(port: u16, folder: &std::path::Path) -> Result<Option<Reserved>> {
    let file = folder.join(port.to_string());
    let lock = File::create(&file).doing(|| format!("creating {}", file.display()))?;
    if lock.try_lock().is_err() || !is_free(port) {
        return Ok(None);
    }
    Ok(Some(Reserved { port, _lock: lock }))
}

fn reservations() -> Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("aftercommit-ports-{uid}"));
    fs::create_dir_all(&folder).doing(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Fails with the port, its purpose and its holder when somebody already listens there.
pub(crate) fn must_be_free(port: u16, purpose: &str) -> Result<()> {
    if is_free(port) {
        return Ok(());
    }
    let holder = holder(port).unwrap_or_else(|| "a process that cannot be seen from here".to_owned());
    Err(Error::new(format!(
        "port {port} ({purpose}) is taken by {holder}; free it or choose other ports with AFTERCOMMIT_PORT_BASE"
    )))
}

/// The process that listens on the port, as `pid N (command line)`.
fn holder(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| socket_inode(&table, port))?;
    let socket = format!("socket:[{inode}]");
    let pid = fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| holds(*pid, &socket))?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let shown: String = line.trim().chars().take(120).collect();
    Some(format!("pid {pid} ({shown})"))
}

fn holds(pid: u32, socket: &str) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    handles.filter_map(|h| fs::read_link(h.ok()?.path()).ok()).any(|to| to.as_os_str() == socket)
}

/// Finds the inode of the socket bound to `port` in the kernel's table, a listening one first.
fn socket_inode(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let bound: Vec<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|f| f.get(1).is_some_and(|local| local.ends_with(&format!(":{port:04X}"))))
        .collect();
    let listening = bound.iter().find(|f| f.get(3) == Some(&LISTEN));
    listening.or(bound.first()).and_then(|f| f.get(9)).map(|&inode| inode.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reservations_never_share_a_port() {
        let (a, b) = (reserve().unwrap(), reserve().unwrap());
        assert_ne!(a.get(), b.get());
    }

    #[test]
    fn a_taken_port_is_reported_with_its_holder() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = must_be_free(port, "AMQP").unwrap_err().to_string();
        assert!(text.contains(&format!("port {port} (AMQP)")), "{text}");
        assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");
        drop(listener);
        must_be_free(port, "AMQP").unwrap();
    }

    #[test]
    fn the_listening_socket_is_preferred_to_a_connection_on_the_same_port() {
        let table = "header\n\
            0: 0100007F:D898 0100007F:9C40 01 0:0 00:0 0 0 0 11 1\n\
            1: 0100007F:D898 00000000:0000 0A 0:0 00:0 0 0 0 22 1\n";
        assert_eq!(socket_inode(table, 0xD898).as_deref(), Some("22"));
        assert_eq!(socket_inode(table, 80), None);
    }
}
