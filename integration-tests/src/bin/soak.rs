//! `cargo xtask soak [--minutes N] [--seed S]`: minutes of random kills and outages; see the library's `soak`.

use std::process::ExitCode;
use std::time::Duration;

use aftercommit_integration_tests::soak::{self, Plan};

const USAGE: &str = "usage: cargo xtask soak [--minutes N] [--seed S]";

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("consumer", rest)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return soak::consumer::main(rest).await;
    }
    let Some((minutes, seed)) = parsed(&args) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("the soak's own program: {error}");
            return ExitCode::FAILURE;
        }
    };
    let plan = Plan { faults: Duration::from_secs_f64(minutes * 60.0), seed, program };
    // In a task, so that a panic, which is how a promise turns out broken, is seen here.
    if tokio::spawn(soak::run(plan)).await.is_ok() {
        return ExitCode::SUCCESS;
    }
    eprintln!("soak: FAILED; the same faults again: cargo xtask soak --minutes {minutes} --seed {seed}");
    ExitCode::FAILURE
}

/// Ten minutes with a new seed unless told otherwise.
fn parsed(args: &[String]) -> Option<(f64, u64)> {
    let (mut minutes, mut seed) = (10.0, rand::random());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--minutes" => minutes = value.parse().ok().filter(|minutes| *minutes > 0.0)?,
            "--seed" => seed = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((minutes, seed))
}
