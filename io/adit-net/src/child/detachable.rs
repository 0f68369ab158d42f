//! A child that may outlive this process, such as its successor.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::oneshot;

use super::STACK;

/// A running child, which is killed when this is dropped, unless it was [detached](Self::detach).
#[derive(Debug)]
pub struct DetachableChild {
    id: u32,
    /// The process, until it is reaped: up to then its ID cannot be reused.
    process: Arc<Mutex<Option<Pid>>>,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
    is_detached: bool,
}

/// Starts `command` with its input and outputs, in the process group of this process. A separate thread waits for the
/// end of the child. Requires a tokio runtime.
///
/// # Errors
/// The errors of `fork` and `exec`.
///
/// # Cancel safety
/// If the call is cancelled, the child is killed.
pub async fn spawn_detachable(command: Command) -> io::Result<DetachableChild> {
    let (sender, started) = oneshot::channel();
    thread::Builder::new()
        .name("successor".to_owned())
        .stack_size(STACK)
        .spawn(move || run_thread(command, sender))?;
    started.await.map_err(io::Error::other)?
}

fn run_thread(mut command: Command, sender: oneshot::Sender<io::Result<DetachableChild>>) {
    let spawned = command.spawn();
    // It owns the child's end of a channel, whose peer waits until it is closed.
    drop(command);
    let mut child = match spawned {
        Ok(child) => child,
        Err(why) => {
            // The caller may have gone.
            let _ = sender.send(Err(why));
            return;
        }
    };
    let pid = Pid::from_child(&child);
    let process = Arc::new(Mutex::new(Some(pid)));
    let (exit, ended) = oneshot::channel();
    let started = DetachableChild {
        id: child.id(),
        process: process.clone(),
        ended,
        is_detached: false,
    };
    // A child that the caller does not take is dropped here, which kills it.
    drop(sender.send(Ok(started)));
    while let Err(rustix::io::Errno::INTR) = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    ) {}
    let mut alive = process.lock().unwrap_or_else(PoisonError::into_inner);
    *alive = None;
    let status = child.wait();
    drop(alive);
    let _ = exit.send(status);
}

impl DetachableChild {
    /// Returns the process ID.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Lets the child continue when this is dropped.
    pub fn detach(&mut self) {
        self.is_detached = true;
    }

    /// Waits until the child has ended. Call this once only.
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

impl Drop for DetachableChild {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *process {
            // The only error is a process that has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
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

    #[tokio::test]
    async fn a_child_is_killed_unless_it_was_detached() {
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
    async fn the_end_of_a_child_is_reported() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 7"]);
        let mut child = spawn_detachable(command).await.unwrap();
        let end = timeout(Duration::from_secs(5), child.wait_for_exit()).await;
        assert_eq!(end.unwrap().unwrap().code(), Some(7));
        let missing = spawn_detachable(Command::new("/no/such/program")).await;
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
