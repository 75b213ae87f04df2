//! Looks at what the broker sends before lapin parses it.
//!
//! Two things are taken from it: the nonces of returned messages, so that a return is known before
//! the confirm that follows it, and ids that are not text. Two things are mended in place, because
//! lapin's parser ends the connection over the first and the process over the second, and the broker
//! would then deliver the same message again for ever: texts that are not UTF-8 (`?` for the bytes
//! that are not) and tables nested so deep that a recursive parser runs out of stack (handed on as
//! bytes). Lengths never change.

mod content;
mod cursor;
mod frame;
mod seen;
mod table;

pub(crate) use frame::Filter;
pub(crate) use seen::Seen;

#[cfg(test)]
mod tests;
