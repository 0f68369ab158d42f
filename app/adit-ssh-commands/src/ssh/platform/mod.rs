//! The differences between systems: the terminal, the standard streams, the user, signals and sockets of this machine.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::*;
#[cfg(windows)]
pub(super) use windows::*;

/// The treatment of keys and output by a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalMode {
    /// Every key and every byte passes unchanged.
    Raw,
    /// Keys arrive one by one, are not shown, and raise no signal, so that an interrupt cannot leave the modes changed.
    Hidden,
}
