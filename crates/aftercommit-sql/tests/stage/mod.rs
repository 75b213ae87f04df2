//! Where the store suite plays: a schema or a file per trial.

#![allow(dead_code, reason = "each test target uses a part of it")]

pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::sync::atomic::{AtomicU32, Ordering};

/// A name that no other trial and no other process uses.
pub(crate) fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("store_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
