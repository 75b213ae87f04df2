//! The reference broker of aftercommit: the contracts of `aftercommit-core` in memory.
//!
//! - Time is virtual, unless [`Settings::time`] says otherwise: nothing waits for the wall clock, [`Clock::advance`]
//!   moves it.
//! - Everything can be seen from outside: [`MemoryBroker::depth`], [`MemoryBroker::events`].
//! - Everything that happens to real brokers can be made to happen:
//!   [`cut_connections`](MemoryBroker::cut_connections), [`take_down`](MemoryBroker::take_down),
//!   [`restart`](MemoryBroker::restart), [`stall`](MemoryBroker::stall),
//!   [`lose_answers`](MemoryBroker::lose_answers), [`abandon`](MemoryBroker::abandon).
//! - [`Broken`] has a switch for each promise of the contracts. A conformance suite that stays
//!   green with a switch on does not test that promise.
//!
//! It is a test broker and a way to try things out: nothing survives the process.

mod acker;
mod broken;
mod broker;
mod clock;
mod control;
mod event;
mod publisher;
mod queue;
mod settings;
mod shared;
mod source;
mod state;
mod subscriber;
mod topology;
mod wire;

pub use broken::Broken;
pub use broker::{MemoryBroker, connect};
pub use clock::Clock;
pub use event::{Event, Position};
pub use queue::{Depth, Limit, Overflow};
pub use settings::{Settings, Time};
