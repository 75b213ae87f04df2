//! Benchmarks of aftercommit against hand-written loops.
