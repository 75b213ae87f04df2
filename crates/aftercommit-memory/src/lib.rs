//! The reference broker of aftercommit, in memory, with virtual time and a switch per broken promise.
