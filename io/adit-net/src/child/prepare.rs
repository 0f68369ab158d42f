//! What a child does between `fork` and `exec`: the one place of this module that needs `unsafe`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, ioctl_tiocsctty, setsid};

/// The signals whose fate a child inherits, of those that whoever started us may have ignored: a
/// shell does so for programs in the background, `nohup` for what it starts.
const INHERITED: [libc::c_int; 7] = [
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
/// Elsewhere than on Linux a child is ended by its [`super::Leash`] alone.
#[allow(
    unsafe_code,
    reason = "`pre_exec` is the only way to set the parent-death signal of a child"
)]
pub(super) fn die_with_parent(command: &mut Command, signal: Signal) {
    let parent = getpid();
    let prepare = move || {
        set_death_signal(signal)?;
        // Had the parent died before the call, no signal would ever come.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from(rustix::io::Errno::SRCH))
        }
    };
    // SAFETY: the closure runs in the forked child of a process with many threads, where only
    // async-signal-safe functions may be called. It makes two system calls (`prctl`, `getppid`)
    // that neither allocate nor lock; an error is a number in an `io::Error` and allocates
    // nothing; what it captures are numbers. It touches no memory that another thread might have
    // held in the middle of a change.
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

/// Makes the child the leader of a session of its own, with `terminal` as what controls it and
/// with the signals as a login has them.
#[allow(
    unsafe_code,
    reason = "`pre_exec` is the only way to make a child lead a session"
)]
pub(super) fn lead_session(command: &mut Command, terminal: Option<OwnedFd>) {
    let prepare = move || {
        for signal in INHERITED {
            // SAFETY: `signal(2)` with a default action installs no code of ours; the numbers are
            // the system's own constants.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        setsid()?;
        if let Some(terminal) = &terminal {
            ioctl_tiocsctty(terminal)?;
        }
        Ok(())
    };
    // SAFETY: as above: `signal`, `setsid` and `ioctl` are async-signal-safe, allocate nothing and
    // take no lock. The captured descriptor is only borrowed: it is closed by `exec`.
    unsafe { command.pre_exec(prepare) };
}
