//! Interrupted in the middle, nothing is left: no process, no queue, no schema, no file.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::Home;
use crate::servers::Servers;

/// Starts the demonstration, and waits until so many consumers have died, so that another one is running.
fn after_crash(number: u8, home: &Home, servers: &Servers) -> (Child, BufReader<std::process::ChildStderr>) {
    let (broker, database) = (servers.broker(), servers.database());
    let mut command = home.command(&["demo", "--broker", &broker, "--database", &database]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut steps = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(&format!("crash {number}")) {
        line.clear();
        let read = steps.read_line(&mut line).unwrap();
        assert!(read > 0, "it ended by itself; if a server is missing: `cargo xtask services up`");
    }
    assert!(servers.left().len() >= 3, "queue, exchange and schema are there while it runs");
    (child, steps)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn ctrl_c_leaves_nothing() {
    interrupted_by(Signal::INT);
}

#[test]
fn sigterm_leaves_nothing() {
    interrupted_by(Signal::TERM);
}

fn interrupted_by(which: Signal) {
    let (home, servers) = (Home::new(), Servers::new());
    let (mut child, mut steps) = after_crash(1, &home, &servers);
    signal(&child, which);
    let mut rest = String::new();
    steps.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted") && !rest.contains("left behind"), "{rest}");
    servers.are_clean();
    home.is_clean();
}

/// Nobody can clean up after that, but the consumer notices that the run is gone.
#[test]
fn a_run_that_is_killed_leaves_no_process() {
    let (home, servers) = (Home::new(), Servers::new());
    // The last consumer, which would not end by itself.
    let (mut child, _steps) = after_crash(4, &home, &servers);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while !home.processes().is_empty() {
        assert!(Instant::now() < end, "still there: {:?}", home.processes());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `aftercommit lab … | head -1`: nobody reads any more, and the run still removes what it made.
#[test]
fn a_reader_that_goes_away_does_no_harm() {
    let (home, servers) = (Home::new(), Servers::new());
    let broker = servers.broker();
    let mut command = home.command(&["lab", "rabbitmq", "consumer-crash", "--broker", &broker]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    servers.are_clean();
    home.is_clean();
}
