//! Contracts of aftercommit: messages, deliveries, sources, publishers, failures.
