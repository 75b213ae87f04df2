//! Finds out which clients this build has, with their digests, for the evidence card.

use std::fs;
use std::path::Path;

/// The crates that talk to servers.
const CLIENTS: [&str; 2] = ["lapin", "sqlx"];

fn main() {
    let lock = Path::new("../../Cargo.lock");
    println!("cargo:rerun-if-changed=build.rs");
    if lock.exists() {
        println!("cargo:rerun-if-changed={}", lock.display());
    }
    let text = fs::read_to_string(lock).unwrap_or_default();
    for name in CLIENTS {
        let (version, checksum) = entry(&text, name).unwrap_or(("unknown", "unknown"));
        println!("cargo:rustc-env=AFTERCOMMIT_LAB_{}={name} {version}", name.to_uppercase());
        println!("cargo:rustc-env=AFTERCOMMIT_LAB_{}_SHA256={checksum}", name.to_uppercase());
    }
}

/// Version and checksum of a package in a lock file. The checksum is that of the crate as published.
fn entry<'a>(lock: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let rest = lock.split_once(&format!("\nname = \"{name}\"\n"))?.1;
    let package = rest.split("\n\n").next()?;
    let value = |key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches([' ', '=']).trim_matches('"'))
    };
    Some((value("version")?, value("checksum")?))
}
