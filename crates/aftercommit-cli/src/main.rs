//! The program `aftercommit`: a demonstration that survives crashes, crash experiments, migrations.

mod args;
mod demo;
mod exit;
mod interrupt;
mod lab;
mod migrate;
mod progress;
mod say;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};

#[tokio::main]
async fn main() -> ExitCode {
    log_to_stderr();
    let done = match Args::parse().command {
        Command::Demo(args) => demo::run(args).await,
        Command::Lab(args) => lab::run(args).await,
        Command::Migrate(args) => migrate::run(&args).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "aftercommit", &mut script);
            say::out(String::from_utf8_lossy(&script).trim_end());
            Ok(exit::OK)
        }
        Command::Role => return aftercommit_lab::role().await,
    };
    let code = done.unwrap_or_else(|error| exit::tell(&error));
    match say::unwritten() {
        Some(error) if code == exit::OK => {
            say::err(format!("error: the standard output cannot be written: {error}"));
            ExitCode::from(exit::NOT_RUN)
        }
        _ => ExitCode::from(code),
    }
}

/// Errors, or what `RUST_LOG` says. The AMQP client is left out: it calls its own farewells errors.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,lapin=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
}
