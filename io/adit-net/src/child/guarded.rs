//! Children that end with the process that supervises them, which can hand them over to another process.
//!
//! Such a child inherits one end of a pipe; its supervisor has the other end, the *lifeline*. When that is closed in all
//! processes, for any reason, the kernel kills the child's process group. (A parent-death signal could not be passed
//! on: it belongs to the process that has started the child.)
//!
//! ```text
//! supervisor                           next supervisor
//!     hand_over ── descriptors ──────▶ HandedOverChild::from_parts
//!     release                          supervise
//! ```

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};

use tokio::net::unix::pipe;

#[cfg(target_os = "linux")]
pub use super::handed_over::HandedOverChild;
#[cfg(target_os = "linux")]
use super::handed_over::InheritedLeader;
use super::{ChildGuard, GroupPolicy, prepare, start_in_thread};

/// The standard output of a child.
pub type ChildOutput = pipe::Receiver;
/// The standard error of a child.
pub type ChildErrors = pipe::Receiver;

/// A running child with its outputs.
#[derive(Debug)]
pub struct GuardedChild {
    /// The guard of the child.
    pub guard: GuardedGroup,
    /// The child's standard output.
    pub stdout: ChildOutput,
    /// The child's standard error.
    pub stderr: ChildErrors,
}

/// A guard of a child and its process group. Dropping it kills them all.
#[derive(Debug)]
pub struct GuardedGroup {
    leader: GroupLeader,
    /// The writing end of the pipe.
    #[cfg(target_os = "linux")]
    lifeline: Option<OwnedFd>,
}

/// The process that leads the group.
#[derive(Debug)]
enum GroupLeader {
    /// A child of this process.
    Child(ChildGuard),
    /// A child that another process has handed over.
    #[cfg(target_os = "linux")]
    Inherited(InheritedLeader),
}

/// Starts `command` in its own process group, without input and with piped outputs.
///
/// On Linux the group is killed when this process dies, for any reason; there the child inherits one descriptor more.
/// When the child ends, the rest of its group is killed; a process that has left the group (`setsid`) cannot be
/// reached. Requires a tokio runtime.
///
/// # Errors
/// The errors of `pipe`, `fork` and `exec`.
///
/// # Cancel safety
/// If the call is cancelled, the child is killed.
pub async fn spawn_guarded(mut command: Command) -> io::Result<GuardedChild> {
    use std::os::unix::process::CommandExt;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    #[cfg(target_os = "linux")]
    let lifeline = {
        let (reading_end, lifeline) = io::pipe()?;
        prepare::die_with_pipe(&mut command, reading_end.into());
        Some(lifeline.into())
    };
    #[cfg(not(target_os = "linux"))]
    prepare::die_with_parent(&mut command, rustix::process::Signal::KILL);
    let (leader, ends) = start_in_thread(command, GroupPolicy::Kill).await?;
    let (Some(stdout), Some(stderr)) = (ends.stdout, ends.stderr) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    Ok(GuardedChild {
        guard: GuardedGroup {
            leader: GroupLeader::Child(leader),
            #[cfg(target_os = "linux")]
            lifeline,
        },
        stdout: pipe::Receiver::from_owned_fd(stdout)?,
        stderr: pipe::Receiver::from_owned_fd(stderr)?,
    })
}

impl GuardedGroup {
    /// Returns the process ID of the child; `None` if it has ended.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        let id = match &self.leader {
            GroupLeader::Child(child) => child.id()?,
            #[cfg(target_os = "linux")]
            GroupLeader::Inherited(leader) => leader.id()?,
        };
        Some(id.as_raw_nonzero().get().unsigned_abs())
    }

    /// Sends SIGTERM to the whole group; does nothing if the child has ended.
    pub fn terminate(&self) {
        match &self.leader {
            GroupLeader::Child(child) => child.terminate(),
            #[cfg(target_os = "linux")]
            GroupLeader::Inherited(leader) => leader.signal_group(rustix::process::Signal::TERM),
        }
    }

    /// Kills the whole group (SIGKILL).
    pub fn kill(&self) {
        match &self.leader {
            GroupLeader::Child(child) => child.kill(),
            #[cfg(target_os = "linux")]
            GroupLeader::Inherited(leader) => leader.signal_group(rustix::process::Signal::KILL),
        }
    }

    /// Waits until the child has ended; the rest of its group is killed then. Call this once only. The result is `None`
    /// if another process has started the child: the system reports its status there.
    ///
    /// # Errors
    /// The error of waiting for the child.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_for_exit(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.leader {
            GroupLeader::Child(child) => child.wait_for_exit().await.map(Some),
            #[cfg(target_os = "linux")]
            GroupLeader::Inherited(leader) => {
                leader.wait_for_exit().await?;
                self.lifeline = None;
                Ok(None)
            }
        }
    }

    /// Returns further descriptors of the child and of its outputs, for another process. Until this one
    /// [releases](Self::release) it, either of them keeps it alive.
    ///
    /// # Errors
    /// `NotFound` if the child has ended, and errors of the system.
    #[cfg(target_os = "linux")]
    pub fn hand_over(
        &self,
        stdout: &pipe::Receiver,
        stderr: &pipe::Receiver,
    ) -> io::Result<HandedOverChild> {
        let (id, process) = match &self.leader {
            GroupLeader::Child(child) => child.open_process()?,
            GroupLeader::Inherited(leader) => leader.open_process()?,
        };
        let lifeline = self.lifeline.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned();
        let fds = [process, copy(lifeline)?, copy(stdout)?, copy(stderr)?];
        Ok(HandedOverChild::new(id, fds))
    }

    /// Leaves the child to the process that it was handed over to.
    #[cfg(target_os = "linux")]
    pub fn release(mut self) {
        match &mut self.leader {
            GroupLeader::Child(child) => child.release(),
            GroupLeader::Inherited(leader) => leader.release(),
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) const fn inherited(leader: InheritedLeader, lifeline: OwnedFd) -> Self {
        Self {
            leader: GroupLeader::Inherited(leader),
            lifeline: Some(lifeline),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::time::timeout;

    use super::super::tests::{gone, lives};
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    async fn shell(script: &str) -> GuardedChild {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        spawn_guarded(command).await.unwrap()
    }

    async fn line(from: &mut pipe::Receiver) -> String {
        let mut text = String::new();
        while !text.ends_with('\n') {
            let byte = timeout(SOON, from.read_u8()).await.unwrap().unwrap();
            text.push(byte.into());
        }
        text.trim().to_owned()
    }

    #[tokio::test]
    async fn both_outputs_and_the_end_are_told() {
        let mut child = shell("echo out; echo err >&2; exit 7").await;
        assert_eq!(line(&mut child.stdout).await, "out");
        assert_eq!(line(&mut child.stderr).await, "err");
        let status = timeout(SOON, child.guard.wait_for_exit())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(status.unwrap().code(), Some(7));
        child.guard.kill();
    }

    #[tokio::test]
    async fn a_program_that_cannot_run_is_an_error() {
        let e = spawn_guarded(Command::new("/no/such/program"))
            .await
            .unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn what_the_child_leaves_behind_goes_with_it() {
        let script =
            "sh -c 'trap \"\" TERM; echo $$; exec sleep 600' & read x < /dev/null; sleep 1";
        let mut child = shell(script).await;
        let left = line(&mut child.stdout).await;
        assert!(lives(&left));
        timeout(SOON, child.guard.wait_for_exit())
            .await
            .unwrap()
            .unwrap();
        gone(&left).await;
    }

    #[tokio::test]
    async fn dropping_the_leash_kills_the_group() {
        let script = "trap '' TERM; echo $$; sleep 600 & echo $!; wait; sleep 600";
        let mut child = shell(script).await;
        let all = [line(&mut child.stdout).await, line(&mut child.stdout).await];
        child.guard.terminate();
        drop(child);
        for pid in all {
            gone(&pid).await;
        }
    }

    #[tokio::test]
    async fn a_start_that_is_given_up_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("adit-leash-{}", std::process::id()));
        let mut command = Command::new("/bin/sh");
        let script = format!("echo $$ > '{}'; exec sleep 600", folder.display());
        command.args(["-c", &script]);
        // The thread starts it anyway.
        drop(timeout(Duration::ZERO, spawn_guarded(command)).await);
        for _ in 0..30 {
            if let Ok(pid) = std::fs::read_to_string(&folder)
                && !pid.is_empty()
            {
                gone(pid.trim()).await;
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let _ = std::fs::remove_file(folder);
    }

    /// Hands a child over to this same process.
    #[cfg(target_os = "linux")]
    async fn handed_over(script: &str) -> (GuardedChild, String) {
        let mut child = shell(script).await;
        let pid = line(&mut child.stdout).await;
        let handed = child.guard.hand_over(&child.stdout, &child.stderr).unwrap();
        child.guard.release();
        let (id, fds) = handed.into_parts();
        assert_eq!(id.to_string(), pid);
        let handed = HandedOverChild::from_parts(id, fds.into()).unwrap();
        (handed.supervise().unwrap(), pid)
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_child_that_was_handed_over_lives_until_its_supervisor_ends_it() {
        let script = "echo $$; read x < /dev/null; trap 'echo term; exit' TERM; sleep 600 & echo $!; wait; wait";
        let (mut child, pid) = handed_over(script).await;
        let other = line(&mut child.stdout).await;
        assert!(lives(&pid) && lives(&other));
        child.guard.terminate();
        assert_eq!(line(&mut child.stdout).await, "term");
        let status = timeout(SOON, child.guard.wait_for_exit()).await;
        assert_eq!(status.unwrap().unwrap(), None);
        gone(&pid).await;
        gone(&other).await;
        assert!(child.guard.hand_over(&child.stdout, &child.stderr).is_err());

        let (mut child, pid) = handed_over("trap '' TERM; echo $$; sleep 600; sleep 600").await;
        child.guard.terminate();
        let early = timeout(Duration::from_millis(300), child.guard.wait_for_exit());
        assert!(early.await.is_err() && lives(&pid));
        drop(child);
        gone(&pid).await;
    }

    /// The last lifeline that is closed ends it, however many there were.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_child_ends_with_its_last_supervisor() {
        let mut child = shell("echo $$; sleep 600").await;
        let pid = line(&mut child.stdout).await;
        let handed = child.guard.hand_over(&child.stdout, &child.stderr).unwrap();
        child.guard.release();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(lives(&pid));
        drop(handed);
        gone(&pid).await;
    }
}
