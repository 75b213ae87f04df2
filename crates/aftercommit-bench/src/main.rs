//! The program `aftercommit-bench`.

use std::process::ExitCode;

use aftercommit_bench::{Error, Options, Place, Report, Result, USAGE};

#[tokio::main]
async fn main() -> ExitCode {
    match call().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("aftercommit-bench: {error}");
            ExitCode::from(2)
        }
    }
}

async fn call() -> Result<ExitCode> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let report = aftercommit_bench::run(&Place::from_env()?, &options).await?;
    println!("{}", shown(&report, options.json)?);
    if let Some(file) = &options.write {
        report.write(file)?;
    }
    Ok(if report.passed() || !options.bar { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(report: &Report, json: bool) -> Result<String> {
    if json {
        return serde_json::to_string_pretty(report).map_err(Error::from);
    }
    let verdict = if report.passed() { "PASS" } else { "FAIL" };
    Ok(format!(
        "{}\n\n{verdict}: every bar {}",
        report.text(),
        if report.passed() { "is reached" } else { "must be reached" }
    ))
}
