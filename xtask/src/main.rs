//! `cargo xtask`: see `cargo xtask --help`.

use std::process::ExitCode;

use xtask::services::{self, Place};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> xtask::Result<bool> {
    let words: Vec<_> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["services", action, ..] => services(action, &args[2..]),
        _ => {
            println!("cargo xtask services up|down|status [NAME...]");
            Ok(true)
        }
    }
}

fn services(action: &str, names: &[String]) -> xtask::Result<bool> {
    let place = Place::from_env()?;
    let chosen = services::named(names)?;
    match action {
        "up" => services::up(&place, &chosen).map(|()| true),
        "down" => services::down(&place, &chosen).map(|()| true),
        "status" => Ok(services::status(&place, &chosen)),
        _ => Err(xtask::Error::new(format!("no such action: {action}; there are up, down, status"))),
    }
}
