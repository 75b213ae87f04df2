//! What cannot be run says what and where, and what to do; no password shows.

use crate::run::{Ended, Home};

fn fails(arguments: &[&str], code: i32, says: &[&str]) -> Ended {
    let home = Home::new();
    let ended = home.run(arguments).expect(code);
    for text in says {
        assert!(ended.err.contains(text), "no {text:?} in\n{}", ended.all());
    }
    assert!(!ended.all().contains("secret"), "{}", ended.all());
    home.is_clean();
    ended
}

/// A port on which nobody listens: it was free a moment ago.
#[cfg(any(feature = "rabbitmq", feature = "postgres"))]
fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_wrong_command_line_is_2() {
    fails(&["demo", "--seed", "many"], 2, &["--seed"]);
    fails(&["lab", "rabbitmq", "nothing"], 2, &["consumer-crash"]);
    fails(&["demo", "--broker", "nats://u:secret@h"], 2, &["\"nats\"", "amqp, amqps, sqlqueue"]);
    fails(&["demo", "--broker", "u:secret"], 2, &["no broker has URLs with the scheme \"u\""]);
    fails(&["demo", "--broker", "memory:"], 2, &["ends with its process"]);
    fails(
        &["lab", "rabbitmq", "consumer-crash", "--broker", "sqlqueue:"],
        2,
        &["must begin with amqp: or amqps:"],
    );
}

#[cfg(all(feature = "sqlqueue", feature = "sqlite"))]
#[test]
fn files_of_ones_own_are_refused() {
    fails(&["demo", "--broker", "sqlqueue:mine.db"], 2, &["write sqlqueue: without a path"]);
    fails(&["demo", "--database", "sqlite:mine.db"], 2, &["write sqlite: without a path"]);
    fails(&["demo", "--database", "mysql://u:secret@h/d"], 2, &["known are postgres, postgresql, sqlite"]);
}

#[cfg(all(feature = "rabbitmq", feature = "sqlite"))]
#[test]
fn a_missing_broker_is_named() {
    let port = closed_port();
    let broker = format!("amqp://user:secret@127.0.0.1:{port}");
    let place = format!("127.0.0.1:{port}");
    let says = ["cannot be reached", place.as_str(), "cargo xtask services up"];
    fails(&["lab", "rabbitmq", "consumer-crash", "--broker", &broker], 3, &says);
    fails(&["demo", "--broker", &broker], 3, &says);
}

#[cfg(all(feature = "sqlqueue", feature = "postgres"))]
#[test]
fn a_missing_database_is_named() {
    let port = closed_port();
    let database = format!("postgres://user:secret@127.0.0.1:{port}/shop");
    let place = format!("PostgreSQL at 127.0.0.1:{port} cannot be reached");
    let says = [place.as_str(), "cargo xtask services up"];
    fails(&["demo", "--database", &database], 3, &says);
    fails(&["migrate", "--database", &database], 3, &says);
}

#[cfg(all(feature = "sqlqueue", feature = "postgres"))]
#[test]
fn a_database_that_refuses_says_why() {
    let url = xtask::services::postgres::url().unwrap();
    let database = format!("{}/no_such_database", &url[..url.rfind('/').unwrap()]);
    fails(
        &["demo", "--database", &database],
        3,
        &["refused access: database \"no_such_database\" does not exist"],
    );
}

#[cfg(not(feature = "rabbitmq"))]
#[test]
fn a_missing_product_names_its_feature() {
    let says = ["rabbitmq is not in this build", "--features rabbitmq"];
    fails(&["lab", "rabbitmq", "consumer-crash"], 3, &says);
    fails(&["demo", "--broker", "amqp://u:secret@h"], 3, &says);
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_missing_database_names_its_feature() {
    let says = ["postgres is not in this build", "--features postgres"];
    fails(&["demo", "--database", "postgres://u:secret@h/d"], 3, &says);
    fails(&["migrate", "--database", "postgres://u:secret@h/d"], 3, &says);
}

#[test]
fn the_part_of_a_process_cannot_be_typed() {
    fails(&["role"], 3, &["this is started by the lab"]);
}

#[test]
fn help_and_completions_know_every_command() {
    let home = Home::new();
    let help = home.run(&["--help"]).expect(0).out;
    let completions = home.run(&["completions", "bash"]).expect(0).out;
    for command in ["demo", "lab", "migrate", "completions"] {
        assert!(help.contains(command) && completions.contains(command), "{command}");
    }
    assert!(help.contains("Exit codes:"), "{help}");
    assert!(home.run(&["lab", "--help"]).expect(0).out.contains("Examples:"));
}

/// What was asked for did not arrive: that is no success, and no panic. A reader who has enough is no failure.
#[test]
fn an_output_that_cannot_be_written_is_said() {
    let home = Home::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = home.command(&["completions", "bash"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("the standard output cannot be written"), "{said}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = home.command(&["completions", "bash"]).stdout(writer).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[cfg(all(feature = "sqlqueue", feature = "sqlite"))]
#[test]
fn a_folder_that_cannot_be_made_is_found_before_the_run() {
    let home = Home::new();
    std::fs::write(home.path("file"), "").unwrap();
    let ended = home.run(&["lab", "sqlqueue", "consumer-crash", "--out", "file/runs"]).expect(3);
    assert!(ended.out.is_empty() && ended.err.contains("file/runs"), "{}", ended.all());
}

/// The first command of a newcomer must need nothing but a C compiler.
#[test]
fn the_default_build_has_no_client_of_a_server() {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["tree", "--package", "aftercommit-cli", "--edges", "normal,build", "--prefix", "none"]);
    let tree = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let packages: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(packages.contains(&"libsqlite3-sys"), "{tree}");
    for client in ["lapin", "sqlx-postgres", "sqlx-mysql", "ring"] {
        assert!(!packages.contains(&client), "{client} would be built");
    }
}
