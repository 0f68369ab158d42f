//! Code that a child runs between `fork` and `exec`: the one part of this module that needs `unsafe`.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, ioctl_tiocsctty, setsid};

/// Signals whose disposition a child inherits and which our own parent may have ignored: a shell does so
/// for programs in the background, `nohup` for the program it starts.
const RESET_SIGNALS: [libc::c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// Has the kernel send `signal` to the child when the thread that starts it ends.
///
/// On systems other than Linux only its [`super::ChildGuard`] ends a child.
#[allow(
    unsafe_code,
    reason = "`pre_exec` is the only way to set the parent-death signal of a child"
)]
pub(super) fn die_with_parent(command: &mut Command, signal: Signal) {
    let parent = getpid();
    let prepare = move || {
        set_death_signal(signal)?;
        // If the parent had died before the call, the signal would never be sent.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from(rustix::io::Errno::SRCH))
        }
    };
    // SAFETY: the closure runs in the forked child of a multi-threaded process, where only
    // async-signal-safe functions may be called. It makes two system calls (`prctl`, `getppid`) that
    // neither allocate nor lock; an error is a number in an `io::Error` and allocates nothing; the closure
    // captures only numbers. It touches no memory that another thread might have been changing.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(target_os = "linux")]
fn set_death_signal(signal: Signal) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(
        signal,
    ))?)
}

#[cfg(not(target_os = "linux"))]
fn set_death_signal(_signal: Signal) -> io::Result<()> {
    Ok(())
}

/// Has the kernel kill the process group of the child, which leads it, when the last writing end of a pipe is closed.
/// `reading_end` is the other end, which the child inherits.
///
/// Unlike the parent-death signal, this does not depend on the process that has started the child: the writing end can
/// be passed on.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "`pre_exec` is the only way to run code in the child, and `fcntl` has no safe wrapper for the owner of a descriptor"
)]
pub(super) fn die_with_pipe(command: &mut Command, reading_end: OwnedFd) {
    /// `F_SETSIG`, the same on all architectures; the crate libc lacks it.
    const SET_SIGNAL: libc::c_int = 10;
    let set = |fd: &OwnedFd, operation: libc::c_int, value: libc::c_int| {
        // SAFETY: both operations take a number and access no memory; the descriptor is open.
        match unsafe { libc::fcntl(fd.as_raw_fd(), operation, value) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    let prepare = move || {
        let group = getpid().as_raw_nonzero().get();
        set(&reading_end, libc::F_SETOWN, -group)?;
        set(&reading_end, SET_SIGNAL, Signal::KILL.as_raw())?;
        let flags = rustix::fs::fcntl_getfl(&reading_end)? | rustix::fs::OFlags::ASYNC;
        rustix::fs::fcntl_setfl(&reading_end, flags)?;
        // `exec` closes the child's copy of the writing end: if it is the last one, the child is killed then.
        Ok(rustix::io::fcntl_setfd(
            &reading_end,
            rustix::io::FdFlags::empty(),
        )?)
    };
    // SAFETY: as above: `getpid` and `fcntl` are async-signal-safe, allocate nothing and take no lock. The captured
    // descriptor is only borrowed.
    unsafe { command.pre_exec(prepare) };
}

/// Makes the child the leader of its own session, with `terminal` as the controlling terminal and with
/// default signal dispositions, as after a login.
#[allow(
    unsafe_code,
    reason = "`pre_exec` is the only way to make a child lead a session"
)]
pub(super) fn lead_session(command: &mut Command, terminal: Option<OwnedFd>) {
    let prepare = move || {
        for signal in RESET_SIGNALS {
            // SAFETY: `signal(2)` with a default action installs no handler; the numbers are the system's
            // own constants.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        setsid()?;
        if let Some(terminal) = &terminal {
            ioctl_tiocsctty(terminal)?;
        }
        Ok(())
    };
    // SAFETY: as above: `signal`, `setsid` and `ioctl` are async-signal-safe, allocate nothing and take no
    // lock. The captured descriptor is only borrowed; `exec` closes it.
    unsafe { command.pre_exec(prepare) };
}

/// Starts the program of `command` in a child of the child, which then ends. The result reports the process ID of the
/// program, in four bytes, once the child has started; it reports nothing if that failed.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "only a fork in `pre_exec` starts a program that is no child of this process"
)]
pub(super) fn start_in_grandchild(command: &mut Command) -> io::Result<OwnedFd> {
    let (report, reporter) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let prepare = move || {
        // SAFETY: the arguments are numbers: `fork` without the handlers of the C library, which might wait for a lock
        // that another thread has held.
        let forked = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        let id = match libc::pid_t::try_from(forked) {
            // The grandchild goes on to `exec`.
            Ok(0) => return Ok(()),
            Ok(id) if id > 0 => id,
            _ => return Err(io::Error::last_os_error()),
        };
        // Without the report, the parent kills nothing and says so.
        let _ = rustix::io::write(&reporter, &id.to_ne_bytes());
        // SAFETY: ends the process without running code of the parent's.
        unsafe { libc::_exit(0) }
    };
    // SAFETY: as above: `clone`, `write` and `_exit` are system calls that allocate nothing and take no lock. Until the
    // grandchild calls `exec`, it is a copy of a child between `fork` and `exec`, with the same restrictions. The captured
    // descriptor is only borrowed; `exec` closes it.
    unsafe { command.pre_exec(prepare) };
    Ok(report)
}
