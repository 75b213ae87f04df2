//! xtask.
