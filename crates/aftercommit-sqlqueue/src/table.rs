//! All SQL of this crate.
//!
//! A message is ready when `visible_at` is 0; a lease or a delay sets it to their end, and the claim that finds the end
//! passed sets it to 0 again before it takes the oldest that are ready. So the index on `(queue, visible_at)` answers every
//! question in the order of publishing, and the time is compared nowhere else. The envelope and the body stand in a table of
//! their own, which is written once.

mod claim;
mod declare;
mod look;
mod migrate;
mod publish;
mod settle;

pub(crate) use claim::{Claim, Claimed, Lease, Mend, Renew};
pub(crate) use declare::Declare;
pub(crate) use look::{Found, Sight, depth, found, from_the_future, look};
pub(crate) use migrate::{VERSION, migrate, version};
pub(crate) use publish::{Publish, Routed};
pub(crate) use settle::{Ack, GiveBack, Release, TryToWrite};

pub use look::Depth;

/// Names one claim: whoever holds it holds its leases.
pub(crate) type Token = [u8; 16];

/// The exchange key that matches every routing key.
pub(crate) const EVERY_KEY: &str = "#";
