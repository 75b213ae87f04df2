//! Suites that any broker or store of aftercommit must pass, fault decorators and a fault proxy.

pub mod proxy;
