//! Locks of files that leave their content readable. The call has no safe wrapper.

use std::fs::{File, TryLockError};
use std::io;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// Locks a file against others that call this, until it is closed. Unlike [`File::try_lock`], which on Windows keeps
/// everyone from reading the file, this locks one byte that no file is long enough for.
#[allow(unsafe_code, reason = "no safe wrapper locks a part of a file")]
pub(in super::super) fn try_lock(file: &File) -> Result<(), TryLockError> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.OffsetHigh = i32::MAX.cast_unsigned();
    // SAFETY: the file is open during the call, and `place` lives longer than it: without a wait, the call is over when
    // it returns.
    let done = unsafe {
        LockFileEx(
            file.as_raw_handle(),
            LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY,
            0,
            1,
            0,
            &raw mut place,
        )
    };
    if done != 0 {
        return Ok(());
    }
    let why = io::Error::last_os_error();
    let is = |code: u32| why.raw_os_error() == Some(code.cast_signed());
    match is(ERROR_LOCK_VIOLATION) || is(ERROR_IO_PENDING) {
        true => Err(TryLockError::WouldBlock),
        false => Err(TryLockError::Error(why)),
    }
}
