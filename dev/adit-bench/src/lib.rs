//! Benchmarks beside the rivals.
