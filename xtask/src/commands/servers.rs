use std::process::Command;

use xtask::services::{self, Place, Service};
use xtask::{Error, Result};

/// `cargo xtask services up|down|status [NAME...]`
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let usage = || Error::new("usage: cargo xtask services up|down|status [NAME...]");
    let (action, names) = args.split_first().ok_or_else(usage)?;
    let place = Place::from_env()?;
    let chosen = services::named(names)?;
    match action.as_str() {
        "up" => services::up(&place, &chosen).map(|()| true),
        "down" => services::down(&place, &chosen).map(|()| true),
        "status" => Ok(services::status(&place, &chosen)),
        _ => Err(usage()),
    }
}

/// The services whose server is not given by the environment.
pub(crate) fn ours(place: &Place) -> Vec<&'static dyn Service> {
    services::ALL.iter().copied().filter(|s| !is_given(*s, place)).collect()
}

fn is_given(service: &dyn Service, place: &Place) -> bool {
    let first = service.variables(place).into_iter().next();
    let given = first.filter(|(name, _)| std::env::var_os(name).is_some());
    if let Some((name, _)) = given {
        println!("{}: not started, {name} is set", service.name());
        return true;
    }
    false
}

/// Starts what the environment does not give, and tells `command` where everything is.
pub(crate) fn provide(command: &mut Command) -> Result<()> {
    let place = Place::from_env()?;
    services::up(&place, &ours(&place))?;
    command.envs(services::variables(&place, services::ALL));
    Ok(())
}
