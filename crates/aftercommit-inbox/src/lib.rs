//! The consumer core of aftercommit: claim, handle, commit, then settle.
