//! The socket under lapin.
//!
//! lapin lets us bring our own stream, and we need one for four things that it does not do: end a
//! connection attempt or a dead connection at once, turn off Nagle's algorithm, know which publishes
//! were returned, and survive frames that lapin's parser dies of ([`filter`]).

mod filter;
mod kit;
mod stream;

pub(crate) use filter::Seen;
pub(crate) use kit::runtime;
pub(crate) use stream::{Wire, open};
