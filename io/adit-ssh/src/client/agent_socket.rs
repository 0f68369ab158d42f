//! The socket of an agent: a Unix socket, or a named pipe of Windows.

#[cfg(unix)]
mod unix;

#[cfg(windows)]
pub(super) use adit_net::named_pipe::connect;
#[cfg(unix)]
pub(super) use unix::connect;
