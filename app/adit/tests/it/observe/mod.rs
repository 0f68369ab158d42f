//! Metrics and logs of a running process.

mod logs;
mod metrics;
mod prometheus;
mod readiness;
