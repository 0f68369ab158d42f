//! Sockets at a path, for programs of this machine: Unix sockets, or named pipes of Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{LocalListener, connect};
#[cfg(windows)]
pub(crate) use windows::{LocalListener, connect};
