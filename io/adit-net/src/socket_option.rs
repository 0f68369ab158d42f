//! Socket options, and one query, that no safe wrapper offers.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use adit_wire::narrow_int;

/// Sets an option whose value is an `int`.
#[allow(unsafe_code, reason = "no safe wrapper has these socket options")]
pub(crate) fn set_int_option(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: u32,
) -> io::Result<()> {
    let value = libc::c_int::try_from(value).map_err(|_| io::ErrorKind::InvalidInput)?;
    let len: libc::socklen_t = narrow_int(size_of_val(&value));
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the pointer and the length are
    // those of `value`, which outlives the call, and the system only reads it.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            len,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns an option whose value is an `int`.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no safe wrapper has these socket options")]
pub(crate) fn int_option(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<u32> {
    let mut value: libc::c_int = 0;
    let mut len: libc::socklen_t = narrow_int(size_of_val(&value));
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the pointers are those of `value`
    // and `len`, which outlive the call, and the system writes at most `len` bytes to `value`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if done == 0 {
        u32::try_from(value).map_err(|_| io::ErrorKind::InvalidData.into())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns true if the next byte of a TCP socket is urgent data.
#[cfg(target_os = "linux")]
pub(crate) fn is_at_mark(socket: &impl AsFd) -> bool {
    posix::sockatmark(socket.as_fd().as_raw_fd()) == 1
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate declares this function")]
mod posix {
    // SAFETY: this is its declaration in POSIX.1-2001. It accepts any number, and returns -1 for one that
    // is not a socket.
    unsafe extern "C" {
        pub(super) safe fn sockatmark(socket: libc::c_int) -> libc::c_int;
    }
}
