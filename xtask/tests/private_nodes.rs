//! Private nodes do what tests need of them, and leave nothing behind. Needs the servers installed
//! (`cargo xtask setup`), not running.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use xtask::services::{postgres, rabbitmq};

/// Not counting a corpse that was not collected yet.
fn runs(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn postgres_keeps_committed_rows_over_restart_and_kill() {
    let node = postgres::Node::start(postgres::NodeOptions { extra_config: "work_mem = 5MB" }).unwrap();
    assert_eq!(node.sql("SHOW work_mem").unwrap().trim(), "5MB");
    assert_eq!(node.sql("SHOW synchronous_commit").unwrap().trim(), "on");
    node.sql("CREATE TABLE t AS SELECT 7 AS n").unwrap();
    for how in [postgres::Shutdown::Fast, postgres::Shutdown::Immediate] {
        node.restart(how).unwrap();
        assert_eq!(node.sql("SELECT n FROM t").unwrap().trim(), "7");
    }
    let killed = node.pid().unwrap();
    node.kill().unwrap();
    assert_eq!(node.pid(), None);
    node.sql("SELECT 1").unwrap_err();
    node.start_again().unwrap();
    assert_ne!(node.pid().unwrap(), killed);
    assert_eq!(node.sql("SELECT n FROM t").unwrap().trim(), "7");
    let last = node.pid().unwrap();
    drop(node);
    assert!(!runs(last));
}

#[test]
fn postgres_that_cannot_start_says_why() {
    let wrong = postgres::NodeOptions { extra_config: "no_such_setting = 1" };
    let text = postgres::Node::start(wrong).unwrap_err().to_string();
    assert!(text.contains("no_such_setting"), "{text}");
}

#[test]
fn rabbitmq_that_cannot_start_says_why() {
    let wrong = rabbitmq::NodeOptions { extra_config: "no_such_setting = 1" };
    let text = rabbitmq::Node::start(wrong).unwrap_err().to_string();
    assert!(text.contains("no_such_setting"), "{text}");
}

#[test]
fn rabbitmq_keeps_durable_queues_over_stop_and_kill_and_takes_its_epmd_along() {
    let node =
        rabbitmq::Node::start(rabbitmq::NodeOptions { extra_config: "consumer_timeout = 60000" }).unwrap();
    let timeout = "application:get_env(rabbit, consumer_timeout).";
    assert!(node.ctl(&["eval", timeout]).unwrap().contains("60000"));
    let declare = "rabbit_amqqueue:declare(rabbit_misc:r(<<\"/\">>, queue, <<\"kept\">>), true, false, [], none, <<>>), ok.";
    node.ctl(&["eval", declare]).unwrap();
    for graceful in [true, false] {
        let before = node.pid().unwrap();
        if graceful {
            node.stop().unwrap()
        } else {
            node.kill().unwrap()
        }
        assert!(!runs(before));
        node.start_again().unwrap();
        assert!(node.ctl(&["list_queues", "name"]).unwrap().contains("kept"));
    }
    let epmd = node.ctl(&["eval", "list_to_integer(os:getenv(\"ERL_EPMD_PORT\"))."]).unwrap();
    let epmd: u16 = epmd.trim().parse().unwrap();
    TcpStream::connect(("127.0.0.1", epmd)).unwrap();
    let last = node.pid().unwrap();
    drop(node);
    assert!(!runs(last));
    TcpStream::connect(("127.0.0.1", epmd)).unwrap_err();
}

/// Runs itself as a second process, which is killed while it has a node.
#[test]
fn a_killed_test_leaves_no_server_and_no_folder() {
    const NAME: &str = "a_killed_test_leaves_no_server_and_no_folder";
    if std::env::var_os("XTASK_TEST_TO_BE_KILLED").is_some() {
        let node = postgres::Node::start(postgres::NodeOptions::default()).unwrap();
        println!("\nnode {} {}", node.pid().unwrap(), node.sql("SHOW data_directory").unwrap());
        loop {
            std::thread::park();
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env("XTASK_TEST_TO_BE_KILLED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("node ")).unwrap();
    let [_, pid, data] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
    let pid = pid.parse().unwrap();
    assert!(runs(pid) && Path::new(data).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while runs(pid) || Path::new(data).parent().unwrap().exists() {
        assert!(Instant::now() < deadline, "server {pid} or {data} is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}
