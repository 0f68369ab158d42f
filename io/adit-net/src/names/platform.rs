//! The differences between systems: the paths of the resolver's files, the versions of files, the host name.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{FileVersion, file_version, files, host_name};
#[cfg(windows)]
pub(super) use windows::{FileVersion, file_version, files, host_name};
