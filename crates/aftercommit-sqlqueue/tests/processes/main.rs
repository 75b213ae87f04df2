//! Several real processes on one file: killed, frozen, in each other's way; and disks that are full or read-only. The
//! processes are this program again, in the roles of [`roles`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod disks;
mod roles;
mod shared;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use aftercommit_conformance::trial;
use aftercommit_core::BoxError;
use futures_util::future::LocalBoxFuture;
use libtest_mimic::Trial;

const DEADLINE: Duration = Duration::from_secs(120);

type Done = Result<(), BoxError>;

fn main() -> ExitCode {
    if let Some(role) = std::env::var_os(roles::ROLE) {
        roles::play(&role.to_string_lossy(), &std::env::args().skip(1).collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    let trials = [
        trial("killed_in_the_middle_of_deliveries", || Box::pin(shared::killed())),
        trial("frozen_past_its_lease_between_commit_and_ack", || Box::pin(shared::frozen())),
        trial("frozen_past_its_lease_an_acker_is_lost", || Box::pin(shared::lost())),
        trial("h09_5000_messages_through_two_processes_and_a_foreign_lock", || Box::pin(shared::many())),
        trial("many_processes_make_one_file_at_once", || Box::pin(shared::made_at_once())),
        trial("a_full_disk_is_said_and_what_was_answered_is_there", || Box::pin(disks::full())),
        trial("a_read_only_disk_is_said", || Box::pin(disks::read_only())),
    ];
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials.into()).exit_code()
}

fn trial(name: &str, body: fn() -> LocalBoxFuture<'static, Done>) -> Trial {
    let run = move || {
        let ended = trial::runtime()?.block_on(async { tokio::time::timeout(DEADLINE, body()).await });
        ended
            .map_err(|_| format!("it did not end within {DEADLINE:?}"))?
            .map_err(|error| error.to_string().into())
    };
    Trial::test(name, run)
}
