use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::{Error, Result, python, services};

use super::cargo::{cargo, could_not_start, succeeds};

const CARGO_DENY: &str = "0.20.2";

/// `cargo xtask setup [--ci]`
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let ci = match args {
        [] => false,
        [ci] if ci == "--ci" => true,
        _ => return Err(Error::new("usage: cargo xtask setup [--ci]")),
    };
    let needs = missing();
    if !needs.is_empty() {
        install_packages(&needs)?;
        if let Some(still) = missing().first() {
            return Err(Error::new(format!("{} was installed and is still not usable", still.what)));
        }
    }
    if ci {
        install_cargo_deny()?;
    }
    Ok(true)
}

struct Need {
    what: &'static str,
    packages: &'static [&'static str],
    is_there: bool,
}

/// What is needed, each line told; the part that is not there is returned.
fn missing() -> Vec<Need> {
    let compiler =
        Need { what: "C compiler", packages: &["gcc", "libc6-dev"], is_there: on_path("cc").is_some() };
    let pika = Need {
        what: "python3 with pika",
        packages: &["python3", "python3-pika"],
        is_there: python::with_pika().is_ok(),
    };
    let servers = services::ALL.iter().map(|s| Need {
        what: s.name(),
        packages: s.packages(),
        is_there: s.is_installed(),
    });
    let all: Vec<_> = [compiler, pika].into_iter().chain(servers).collect();
    for need in &all {
        println!("setup: {}: {}", need.what, if need.is_there { "there" } else { "missing" });
    }
    all.into_iter().filter(|need| !need.is_there).collect()
}

fn install_packages(needs: &[Need]) -> Result<()> {
    let packages: Vec<_> = needs.iter().flat_map(|need| need.packages).copied().collect();
    let install = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if on_path("apt-get").is_none() {
        return Err(Error::new(format!(
            "no apt-get here; what Debian installs with `{install}` must be there"
        )));
    }
    if !is_root() {
        return Err(Error::new(format!("not root; run as root: apt-get update && {install}")));
    }
    println!("setup: {install}");
    let _policy = NoAutostart::impose()?;
    apt_get(&["update", "-q"])?;
    let mut args = vec!["install", "-q", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"];
    args.extend(&packages);
    apt_get(&args)
}

fn apt_get(args: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    if succeeds(&mut command)? {
        Ok(())
    } else {
        Err(Error::new(format!("apt-get {} failed", args.join(" "))))
    }
}

/// While it lives, Debian's packages start no service: the servers' packages would start one on its usual port.
/// A policy that the machine has already stays in force, and services that run are left alone.
struct NoAutostart(Option<PathBuf>);

const POLICY: &str = "#!/bin/sh\n# Written by cargo xtask setup for the time of an installation.\nexit 101\n";

impl NoAutostart {
    fn impose() -> Result<Self> {
        let file = PathBuf::from("/usr/sbin/policy-rc.d");
        let left_by_us = fs::read_to_string(&file).is_ok_and(|text| text == POLICY);
        if file.exists() && !left_by_us {
            return Ok(Self(None));
        }
        fs::write(&file, POLICY)
            .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
            .map_err(|e| Error::new(format!("writing {}: {e}", file.display())))?;
        Ok(Self(Some(file)))
    }
}

impl Drop for NoAutostart {
    fn drop(&mut self) {
        if let Some(file) = &self.0
            && let Err(e) = fs::remove_file(file)
        {
            eprintln!("warning: {} stays and keeps packages from starting services: {e}", file.display());
        }
    }
}

/// Without optimisation, which makes it minutes faster to build and costs its runs a second.
fn install_cargo_deny() -> Result<()> {
    let version = cargo(&["deny", "--version"]).stderr(Stdio::null()).output();
    let known = version.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default();
    if known.ends_with(&format!(" {CARGO_DENY}")) {
        println!("setup: {known}: there");
        return Ok(());
    }
    println!("setup: cargo install cargo-deny --version {CARGO_DENY}");
    let mut install = cargo(&["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--debug"]);
    let done = install.status().map_err(|e| could_not_start(&install, &e))?.success();
    if done { Ok(()) } else { Err(Error::new("cargo-deny could not be installed")) }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| Path::exists(file))
}
