//! Child processes that never outlive adit, including everything they start.

pub mod guarded;
mod job;
