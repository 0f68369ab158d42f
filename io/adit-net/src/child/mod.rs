//! Child processes that never outlive adit, including everything they start in their process group.
//! [`guarded`] has those that another process of adit can continue to supervise, [`login`] the programs of users,
//! which may leave processes behind, and [`terminal`] the terminals they run in; `detachable` (on Linux) has processes that
//! may continue without adit.
//!
//! Each child has its own thread here, which starts it, waits for it and kills the rest of its process
//! group. This thread makes the parent-death signal reliable: Linux sends it when the *thread* that forked
//! ends, and this one ends after the child, or with the process.

#[cfg(target_os = "linux")]
pub mod detachable;
pub mod guarded;
#[cfg(target_os = "linux")]
mod handed_over;
pub mod login;
mod prepare;
pub mod terminal;

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::oneshot;

/// Stack size of the thread that waits for a child, in bytes.
const STACK: usize = 128 << 10;

/// A guard of a child and its process group. Dropping it kills them all.
#[derive(Debug)]
pub struct ChildGuard {
    group: Arc<ProcessGroup>,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

/// The process group, until its leader is reaped: up to then its ID cannot be reused.
#[derive(Debug)]
struct ProcessGroup(Mutex<Option<Pid>>);

impl ProcessGroup {
    fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = *self.lock() {
            // The only errors are a group that has just ended and a signal that does not exist.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// The treatment of the group of a child that has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupPolicy {
    Kill,
    Leave,
}

/// The parent's ends of a child's pipes.
struct PipeEnds {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

type StartedChild = (ChildGuard, PipeEnds);

/// Starts a prepared command, which leads its own group, in a separate thread.
async fn start_in_thread(command: Command, rest: GroupPolicy) -> io::Result<StartedChild> {
    let (tell, born) = oneshot::channel();
    thread::Builder::new()
        .name("child".to_owned())
        .stack_size(STACK)
        .spawn(move || run_child_thread(command, rest, tell))?;
    born.await.map_err(io::Error::other)?
}

/// Runs the thread of a child, from its start to its end.
fn run_child_thread(
    mut command: Command,
    rest: GroupPolicy,
    born: oneshot::Sender<io::Result<StartedChild>>,
) {
    let started = command.spawn();
    // It owns the child's ends of pipes and terminals; others wait until these are closed.
    drop(command);
    let mut child = match started {
        Ok(child) => child,
        Err(e) => {
            // The caller may have gone.
            let _ = born.send(Err(e));
            return;
        }
    };
    let pid = Pid::from_child(&child);
    let group = Arc::new(ProcessGroup(Mutex::new(Some(pid))));
    let (tell, ended) = oneshot::channel();
    let leash = ChildGuard {
        group: group.clone(),
        ended,
    };
    // A guard that the caller does not take is dropped here, which kills the child.
    drop(born.send(Ok((leash, PipeEnds::take_from(&mut child)))));

    // The child is not reaped yet: until it is, the ID of the group cannot be reused.
    while let Err(rustix::io::Errno::INTR) = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    ) {}
    let mut alive = group.lock();
    if rest == GroupPolicy::Kill {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    *alive = None;
    let status = child.wait();
    drop(alive);
    let _ = tell.send(status);
}

impl PipeEnds {
    fn take_from(child: &mut Child) -> Self {
        Self {
            stdin: child.stdin.take().map(Into::into),
            stdout: child.stdout.take().map(Into::into),
            stderr: child.stderr.take().map(Into::into),
        }
    }
}

impl ChildGuard {
    fn id(&self) -> Option<Pid> {
        *self.group.lock()
    }

    /// Sends a signal to the whole group; does nothing if the child has ended.
    pub fn signal_group(&self, signal: Signal) {
        self.group.signal(signal);
    }

    /// Sends SIGTERM to the whole group.
    pub fn terminate(&self) {
        self.group.signal(Signal::TERM);
    }

    /// Kills the whole group (SIGKILL).
    pub fn kill(&self) {
        self.group.signal(Signal::KILL);
    }

    /// Opens a descriptor of the child.
    ///
    /// # Errors
    /// `NotFound` if it has ended, and errors of the system.
    #[cfg(target_os = "linux")]
    fn open_process(&self) -> io::Result<(Pid, OwnedFd)> {
        // While it is locked, the child is not reaped.
        let group = self.group.lock();
        let pid = group.ok_or(io::ErrorKind::NotFound)?;
        let flags = rustix::process::PidfdFlags::empty();
        Ok((pid, rustix::process::pidfd_open(pid, flags)?))
    }

    /// Lets the child continue when this is dropped.
    #[cfg(target_os = "linux")]
    fn release(&self) {
        *self.group.lock() = None;
    }

    /// Waits until the child has ended; its group has ended then too. Call this once only.
    ///
    /// # Errors
    /// The error of waiting for the child.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        (&mut self.ended).await.map_err(io::Error::other)?
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    /// Returns true if a process runs; a zombie does not.
    pub(super) fn lives(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    }

    pub(super) async fn gone(pid: &str) {
        for _ in 0..500 {
            if !lives(pid) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("process {pid} is still there");
    }
}
