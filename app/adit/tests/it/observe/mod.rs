//! Metrics and logs of a running process.

mod metrics;
mod prometheus;
mod readiness;
