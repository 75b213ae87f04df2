//! The commands of `cargo xtask`, a file each.

mod cargo;
mod ci;
mod direction;
mod facade;
mod failures;
mod help;
mod matrix;
mod metadata;
mod run;
mod servers;
mod setup;
mod testing;
mod totals;

use xtask::Result;

/// Runs the command; whether all went well.
pub(crate) fn dispatch(args: &[String]) -> Result<bool> {
    let (command, rest) = args.split_first().map_or(("help", args), |(c, rest)| (c.as_str(), rest));
    match command {
        "setup" => setup::run(rest),
        "services" => servers::run(rest),
        "test" => testing::run(rest),
        "ci" => ci::run(),
        "bench" => run::bench(rest),
        "matrix" => matrix::run(rest),
        "soak" => run::soak(rest),
        "help" | "--help" | "-h" => Ok(help::print()),
        unknown => Err(xtask::Error::new(format!("no command {unknown}: see `cargo xtask --help`"))),
    }
}
