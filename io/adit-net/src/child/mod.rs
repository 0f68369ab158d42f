//! Child processes that never outlive adit, including everything they start in their process group.
//! [`login`] has the programs of users, which may leave processes behind, and [`terminal`] the terminals
//! they run in; [`detachable`] has children that may continue without adit.
//!
//! Each child has its own thread here, which starts it, waits for it and kills the rest of its process
//! group. This thread makes the parent-death signal reliable: Linux sends it when the *thread* that forked
//! ends, and this one ends after the child, or with the process.

pub mod detachable;
pub mod login;
mod prepare;
pub mod terminal;

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// Stack size of the thread that waits for a child, in bytes.
const STACK: usize = 128 << 10;

/// A running child with its outputs.
#[derive(Debug)]
pub struct GuardedChild {
    /// The guard of the child.
    pub guard: ChildGuard,
    /// The child's standard output.
    pub stdout: pipe::Receiver,
    /// The child's standard error.
    pub stderr: pipe::Receiver,
}

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

/// Starts `command` in its own process group, without input and with piped outputs.
///
/// On Linux the child is killed when this process dies, for any reason. When the child ends, the rest of
/// its group is killed; a process that has left the group (`setsid`) cannot be reached. Requires a tokio
/// runtime.
///
/// # Errors
/// The errors of `fork` and `exec`.
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
    prepare::die_with_parent(&mut command, Signal::KILL);
    let (leash, ends) = start_in_thread(command, GroupPolicy::Kill).await?;
    let (Some(stdout), Some(stderr)) = (ends.stdout, ends.stderr) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    Ok(GuardedChild {
        guard: leash,
        stdout: pipe::Receiver::from_owned_fd(stdout)?,
        stderr: pipe::Receiver::from_owned_fd(stderr)?,
    })
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

    use tokio::io::AsyncReadExt;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    async fn shell(script: &str) -> GuardedChild {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        spawn_guarded(command).await.unwrap()
    }

    /// Returns true if a process runs or is a zombie.
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
        assert_eq!(status.code(), Some(7));
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
}
