//! A process that may outlive this one, such as its successor.
//!
//! It is no child of this process: a service manager supervises only its own children well. systemd learns of the end
//! of others late, and does not wait for them when it stops their service. So a short-lived child starts the process,
//! and its end makes the process a child of the service manager, or of process 1.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::handed_over::register_process;
use super::prepare::start_in_grandchild;

/// A running process, which is killed when this is dropped, unless it was [detached](Self::detach).
#[derive(Debug)]
pub struct DetachableChild {
    pid: Pid,
    process: Handle,
    is_detached: bool,
}

/// A descriptor of a process, whose ID may be reused once it has ended.
#[derive(Debug)]
enum Handle {
    Open(OwnedFd),
    /// It had ended before it could be opened.
    Ended,
    /// Linux has none before 5.3.
    Unsupported,
}

impl Handle {
    fn open(pid: Pid) -> Self {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => Self::Open(process),
            Err(Errno::SRCH) => Self::Ended,
            Err(_) => Self::Unsupported,
        }
    }
}

/// Starts `command` with its input and outputs, in the process group of this process. Requires a tokio runtime.
///
/// # Errors
/// The errors of `fork` and `exec`.
///
/// # Cancel safety
/// If the call is cancelled, the process is killed.
pub async fn spawn_detachable(command: Command) -> io::Result<DetachableChild> {
    // A result that is not taken is dropped, which kills the process.
    let started = tokio::task::spawn_blocking(|| DetachableChild::start(command)).await;
    started.map_err(io::Error::other)?
}

impl DetachableChild {
    fn start(mut command: Command) -> io::Result<Self> {
        let reported = start_in_grandchild(&mut command)?;
        let mut between = command.spawn()?;
        // It owns the other end of the report, and of a channel whose peer waits until it is closed.
        drop(command);
        let mut id = [0; size_of::<i32>()];
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&reported, &mut id));
        let id = i32::from_ne_bytes(id);
        let pid = Pid::from_raw(id).filter(|_| read == Ok(size_of::<i32>()));
        // From then on, the process is the child of another one.
        between.wait()?;
        let pid = pid.ok_or_else(|| io::Error::other("the process has no known ID"))?;
        Ok(Self {
            pid,
            process: Handle::open(pid),
            is_detached: false,
        })
    }

    /// Returns the process ID.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Lets the process continue when this is dropped.
    pub fn detach(&mut self) {
        self.is_detached = true;
    }

    /// Waits until the process has ended. Its exit status is for its parent alone.
    ///
    /// # Errors
    /// `Unsupported` if the system cannot tell (before Linux 5.3), and errors of the system.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_for_exit(&self) -> io::Result<()> {
        match &self.process {
            Handle::Open(process) => {
                let process = register_process(process.try_clone()?)?;
                process.readable().await.map(drop)
            }
            Handle::Ended => Ok(()),
            Handle::Unsupported => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Drop for DetachableChild {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        // The only error is a process that has just ended.
        let _ = match &self.process {
            Handle::Open(process) => pidfd_send_signal(process, Signal::KILL),
            Handle::Ended => Ok(()),
            Handle::Unsupported => kill_process(self.pid, Signal::KILL),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::super::tests::{gone, lives};
    use super::*;

    fn sleeper() -> Command {
        let mut command = Command::new("/bin/sleep");
        command.arg("60");
        command
    }

    fn parent_of(pid: &str) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        after_name.split_whitespace().nth(1).unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_process_is_killed_unless_it_was_detached() {
        let child = spawn_detachable(sleeper()).await.unwrap();
        let pid = child.id().to_string();
        assert!(lives(&pid));
        drop(child);
        gone(&pid).await;

        let mut child = spawn_detachable(sleeper()).await.unwrap();
        let pid = child.id();
        child.detach();
        drop(child);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(lives(&pid.to_string()));
        let raw = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(raw, Signal::KILL).unwrap();
        gone(&pid.to_string()).await;
    }

    #[tokio::test]
    async fn a_process_is_no_child_of_this_one() {
        let child = spawn_detachable(sleeper()).await.unwrap();
        let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
        assert_eq!(name.trim(), "sleep");
        assert_ne!(
            parent_of(&child.id().to_string()),
            std::process::id().to_string()
        );
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_reported() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 7"]);
        let child = spawn_detachable(command).await.unwrap();
        let end = timeout(Duration::from_secs(5), child.wait_for_exit()).await;
        end.unwrap().unwrap();
        let missing = spawn_detachable(Command::new("/no/such/program")).await;
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
