//! Children that end with the process that supervises them, including everything they start.
//!
//! Each child is in a job of its own, which the system kills when its last handle is closed: also if adit is killed
//! itself. Each child has its own thread here, which starts it and waits for it.

use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;

use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::oneshot;

use super::job::{self, Job};

/// Stack size of the thread that waits for a child, in bytes.
const STACK: usize = 128 << 10;
/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-Break can be sent to the child alone, and Ctrl-C at the console of adit does not
/// reach it.
const OWN_GROUP: u32 = 0x200;

/// The standard output of a child.
pub type ChildOutput = ChildStdout;
/// The standard error of a child.
pub type ChildErrors = ChildStderr;

/// A running child with its outputs.
#[derive(Debug)]
pub struct GuardedChild {
    /// The guard of the child.
    pub guard: GuardedGroup,
    /// The child's standard output.
    pub stdout: ChildStdout,
    /// The child's standard error.
    pub stderr: ChildStderr,
}

/// A guard of a child and the processes it starts. Dropping it kills them all.
#[derive(Debug)]
pub struct GuardedGroup {
    job: Arc<Job>,
    /// The process ID, which is also that of its group.
    id: u32,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

/// Starts `command` in a job of its own, without input and with piped outputs.
///
/// The child is killed when this process dies, for any reason. When the child ends, the processes that it has started
/// are killed, except for those that it started before it was in its job, in the first moments of its life. Requires a
/// tokio runtime.
///
/// # Errors
/// The program cannot be started, or cannot be put into a job.
///
/// # Cancel safety
/// If the call is cancelled, the child is killed.
pub async fn spawn_guarded(mut command: Command) -> io::Result<GuardedChild> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .creation_flags(OWN_GROUP);
    let (sender, started) = oneshot::channel();
    thread::Builder::new()
        .name("child".to_owned())
        .stack_size(STACK)
        .spawn(move || run_child_thread(command, sender))?;
    let (guard, mut child_outputs) = started.await.map_err(io::Error::other)??;
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    Ok(GuardedChild {
        guard,
        stdout: ChildStdout::from_std(child_outputs.stdout.take().ok_or_else(missing)?)?,
        stderr: ChildStderr::from_std(child_outputs.stderr.take().ok_or_else(missing)?)?,
    })
}

/// The ends of a child's pipes.
struct Outputs {
    stdout: Option<std::process::ChildStdout>,
    stderr: Option<std::process::ChildStderr>,
}

type StartedChild = (GuardedGroup, Outputs);

/// Runs the thread of a child, from its start to its end.
fn run_child_thread(command: Command, sender: oneshot::Sender<io::Result<StartedChild>>) {
    let (mut child, job) = match start(command) {
        Ok((child, job)) => (child, Arc::new(job)),
        Err(why) => {
            // The caller may have gone.
            let _ = sender.send(Err(why));
            return;
        }
    };
    let (exit, ended) = oneshot::channel();
    let guard = GuardedGroup {
        job: job.clone(),
        id: child.id(),
        ended,
    };
    let outputs = Outputs {
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
    };
    // A guard that the caller does not take is dropped here, which kills the child.
    drop(sender.send(Ok((guard, outputs))));
    let status = child.wait();
    job.kill();
    let _ = exit.send(status);
}

/// Starts a command in a new job.
fn start(mut command: Command) -> io::Result<(Child, Job)> {
    let job = Job::new()?;
    let mut child = command.spawn()?;
    match job.add(&child) {
        Ok(()) => Ok((child, job)),
        // A child that has ended already has a status to report.
        Err(_) if child.try_wait().is_ok_and(|status| status.is_some()) => Ok((child, job)),
        Err(why) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(why)
        }
    }
}

impl GuardedGroup {
    /// Returns the process ID of the child; `None` if it has ended.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        // The message is there once it has ended.
        self.ended.is_empty().then_some(self.id)
    }

    /// Asks the child and its group to end, by Ctrl-Break. A child without a console of adit is killed: there is no
    /// other way to reach it.
    pub fn terminate(&self) {
        if !job::send_ctrl_break(self.id) {
            self.kill();
        }
    }

    /// Kills the child and the processes that it has started.
    pub fn kill(&self) {
        self.job.kill();
    }

    /// Waits until the child has ended; the processes that it has started have ended then too. Call this once only. The
    /// result is never `None`.
    ///
    /// # Errors
    /// The error of waiting for the child.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_for_exit(&mut self) -> io::Result<Option<ExitStatus>> {
        (&mut self.ended).await.map_err(io::Error::other)?.map(Some)
    }
}

impl Drop for GuardedGroup {
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

    const SOON: Duration = Duration::from_secs(60);
    /// The variable with the role of this program, and what a child prints.
    const ROLE: &str = "ADIT_TEST_ROLE";
    const UP: &str = "both are up";

    fn shell(script: &str) -> Command {
        let mut command = Command::new("cmd.exe");
        command.args(["/d", "/c"]).raw_arg(script);
        command
    }

    #[tokio::test]
    async fn both_outputs_and_the_end_are_reported() {
        let mut child = spawn_guarded(shell("echo out& echo err>&2& exit 7"))
            .await
            .unwrap();
        let mut text = String::new();
        let read = child.stdout.read_to_string(&mut text);
        timeout(SOON, read).await.unwrap().unwrap();
        assert_eq!(text.trim(), "out");
        text.clear();
        let read = child.stderr.read_to_string(&mut text);
        timeout(SOON, read).await.unwrap().unwrap();
        assert_eq!(text.trim(), "err");
        let status = timeout(SOON, child.guard.wait_for_exit()).await.unwrap();
        assert_eq!(status.unwrap().unwrap().code(), Some(7));
    }

    #[tokio::test]
    async fn a_program_that_cannot_run_is_an_error() {
        let why = spawn_guarded(Command::new("C:\\no\\such\\program.exe"))
            .await
            .unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::NotFound);
    }

    /// Returns a command that runs one test of this program, with the name of its role.
    fn this_program(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "child::guarded::tests::a_role_waits",
                "--exact",
                "--nocapture",
            ])
            .env(ROLE, role);
        command
    }

    /// Waits if it runs as the child of the test below, or as the child of that one.
    #[test]
    fn a_role_waits() {
        let Ok(role) = std::env::var(ROLE) else {
            return;
        };
        if role == "child" {
            this_program("grandchild").spawn().unwrap();
            println!("{UP}");
        }
        thread::sleep(SOON * 10);
    }

    /// The pipe of a child ends when no process has it open any more: neither the child nor the one that it started.
    #[tokio::test]
    async fn dropping_the_guard_kills_the_child_and_what_it_started() {
        let child = spawn_guarded(this_program("child")).await.unwrap();
        let GuardedChild {
            guard, mut stdout, ..
        } = child;
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains(UP) {
            let read = timeout(SOON, stdout.read_buf(&mut text)).await.unwrap();
            assert_ne!(read.unwrap(), 0);
        }
        drop(guard);
        let rest = timeout(SOON, stdout.read_to_end(&mut text)).await;
        rest.unwrap().unwrap();
    }
}
