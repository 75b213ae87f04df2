//! Exit codes, as the help lists them.

use aftercommit_lab::LabError;

use crate::say;

pub(crate) const OK: u8 = 0;
/// The promise was broken, or an assertion failed.
pub(crate) const BROKEN: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_RUN: u8 = 3;
/// A counter-experiment passed.
pub(crate) const BLIND: u8 = 4;
/// As shells have it for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Says on the standard error why something was not done, and what to do about it; the exit code.
pub(crate) fn tell(error: &LabError) -> u8 {
    say::err(format!("error: {}", aftercommit::core::chain(error)));
    match error {
        LabError::Usage(_) => {
            say::err("see `aftercommit --help`");
            USAGE
        }
        LabError::Interrupted => INTERRUPTED,
        LabError::Away { .. } => {
            say::err(
                "is it running there? `cargo xtask services up` starts the servers of the tests, and `cargo xtask \
                services status` says where they are",
            );
            NOT_RUN
        }
        _ => NOT_RUN,
    }
}
