//! The socket of an agent: a Unix socket, or a named pipe of Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::connect;
#[cfg(windows)]
pub(super) use windows::connect;
