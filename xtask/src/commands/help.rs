use xtask::services::ALL;

use super::run;

const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "setup [--ci]",
        "installs what is missing (Debian 12, as root); --ci: cargo-deny too",
        "cargo xtask setup",
    ),
    (
        "services up|down|status [NAME...]",
        "starts, stops, shows the servers that tests share; without a name all of them",
        "cargo xtask services up postgres",
    ),
    (
        "test [ARGS...]",
        "setup, services up, then cargo test of everything; ARGS go to cargo test",
        "cargo xtask test -p aftercommit-sql -- claim",
    ),
    ("ci", "everything that must hold before a change lands, with a line per step", "cargo xtask ci"),
    (
        "matrix",
        "runs all suites and the crash lab on every product with every database, and writes docs/matrix.md",
        "cargo xtask matrix",
    ),
    ("bench [ARGS...]", "services up, then the benchmarks", "cargo xtask bench inbox"),
];

const SOAK: (&str, &str, &str) = (
    "soak [--minutes N] [--seed S]",
    "random kills and outages of servers of its own for minutes",
    "cargo xtask soak",
);

const ENVIRONMENT: &str = "\
Environment:
  AFTERCOMMIT_PORT_BASE     ports are counted from here (25400): postgres +32, rabbitmq +72 (AMQP),
                            +73 (management), +74 (distribution), +75 (epmd)
  AFTERCOMMIT_SERVICES_DIR  folder of the servers' data, logs and pid files (/var/tmp/aftercommit-services-UID)
  AFTERCOMMIT_POSTGRES_URL, AFTERCOMMIT_RABBITMQ_URL (with AFTERCOMMIT_RABBITMQ_MANAGEMENT_URL)
                            set: tests use that server, and none is started for it
  AFTERCOMMIT_PYTHON        a Python with pika (/usr/bin/python3)";

pub(crate) fn print() -> bool {
    println!("cargo xtask COMMAND\n");
    let soak = run::has_soak().then_some(&SOAK);
    for (usage, what, example) in COMMANDS.iter().chain(soak) {
        println!("  {usage}\n      {what}\n      example: {example}");
    }
    let names: Vec<_> = ALL.iter().map(|s| s.name()).collect();
    println!("\nServices: {}\n\n{ENVIRONMENT}", names.join(", "));
    true
}
