//! The descriptor limit of a process, by `setrlimit`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the current limit of open descriptors.
#[must_use]
pub fn nofile_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit of open descriptors to the maximum allowed. The limit applies to the whole process and
/// to the programs it starts: call this at the start of a program, not from a library.
pub fn raise_nofile() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    // If the system refuses, fewer connections fit.
    let _ = setrlimit(Resource::Nofile, wanted);
}

/// Sets the limit of open descriptors to `count`, or as close as the system allows. Like [`raise_nofile`],
/// this is for programs.
pub fn set_nofile(count: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: Some(maximum.map_or(count, |most| most.min(count))),
        maximum,
    };
    let _ = setrlimit(Resource::Nofile, wanted);
}
