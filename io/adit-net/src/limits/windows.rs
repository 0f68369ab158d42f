//! The limit of handles, which is the same for every process.

/// Maximum number of handles of a process; the system has no setting for it.
const MAX_HANDLES: u64 = 1 << 24;

/// Returns the current limit of open descriptors.
#[must_use]
pub const fn nofile_limit() -> u64 {
    MAX_HANDLES
}

/// Does nothing: a process has the maximum from its start.
pub const fn raise_nofile() {}

/// Does nothing: the limit cannot be changed.
pub const fn set_nofile(_count: u64) {}
