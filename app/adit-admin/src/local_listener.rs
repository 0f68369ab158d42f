//! Listeners for programs of this machine at a path: a Unix socket, or a named pipe of Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::LocalListener;
#[cfg(windows)]
pub(crate) use windows::LocalListener;
