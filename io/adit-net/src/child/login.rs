//! Programs of logged-in users: each leads its own session, with pipes or with a terminal.
//!
//! Unlike other children they may leave processes behind: background processes continue after the program
//! has exited, as after any login. To hang up on a running program, signal it, give it a moment, and drop
//! the [`ChildGuard`], which kills its group.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tokio::net::unix::pipe;

use super::prepare::{die_with_parent, lead_session};
use super::{ChildGuard, GroupPolicy, start_in_thread};

/// Requested capacity of a pipe, in bytes: fewer wakeups when much data moves.
const PIPE_CAPACITY: usize = 256 << 10;

/// A program with its three pipes.
#[derive(Debug)]
pub struct PipedChild {
    /// The guard of the program.
    pub guard: ChildGuard,
    /// The program's standard input.
    pub stdin: pipe::Sender,
    /// The program's standard output.
    pub stdout: pipe::Receiver,
    /// The program's standard error.
    pub stderr: pipe::Receiver,
}

/// Starts `command` as the leader of a session without a terminal, with piped standard streams.
///
/// When this process dies, the program receives SIGHUP (on Linux). Requires a tokio runtime.
///
/// # Errors
/// The errors of `fork` and `exec`.
///
/// # Cancel safety
/// If the call is cancelled, the child is killed.
pub async fn spawn_with_pipes(mut command: Command) -> io::Result<PipedChild> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    lead_session(&mut command, None);
    die_with_parent(&mut command, Signal::HUP);
    let (leash, ends) = start_in_thread(command, GroupPolicy::Leave).await?;
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    let stdin = enlarge_pipe(ends.stdin.ok_or_else(missing)?);
    let stdout = enlarge_pipe(ends.stdout.ok_or_else(missing)?);
    let stderr = ends.stderr.ok_or_else(missing)?;
    Ok(PipedChild {
        guard: leash,
        stdin: pipe::Sender::from_owned_fd(stdin)?,
        stdout: pipe::Receiver::from_owned_fd(stdout)?,
        stderr: pipe::Receiver::from_owned_fd(stderr)?,
    })
}

/// Starts `command` as the leader of a session that `terminal` controls. `terminal` is the program's end;
/// it becomes all three of its standard streams.
///
/// # Errors
/// The errors of `fork` and `exec`.
///
/// # Cancel safety
/// If the call is cancelled, the child is killed.
pub async fn spawn_with_terminal(
    mut command: Command,
    terminal: OwnedFd,
) -> io::Result<ChildGuard> {
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal.try_clone()?);
    lead_session(&mut command, Some(terminal));
    die_with_parent(&mut command, Signal::HUP);
    let (leash, _) = start_in_thread(command, GroupPolicy::Leave).await?;
    Ok(leash)
}

#[cfg(target_os = "linux")]
fn enlarge_pipe(pipe: OwnedFd) -> OwnedFd {
    // A user's share of pipe memory is limited; the default size works as well.
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_CAPACITY);
    pipe
}

#[cfg(not(target_os = "linux"))]
fn enlarge_pipe(pipe: OwnedFd) -> OwnedFd {
    let _ = PIPE_CAPACITY;
    pipe
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    use super::super::terminal::{PseudoTerminal, TerminalSize};
    use super::super::tests::{gone, lives};
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    async fn all(from: &mut (impl AsyncReadExt + Unpin)) -> String {
        let mut text = String::new();
        let read = timeout(SOON, from.read_to_string(&mut text)).await;
        read.unwrap().unwrap();
        text
    }

    #[tokio::test]
    async fn three_streams_and_a_session() {
        let script = "cat; echo err >&2; ps -o sid= -p $$; echo $$; exit 3";
        let mut program = spawn_with_pipes(shell(script)).await.unwrap();
        program.stdin.write_all(b"in\n").await.unwrap();
        drop(program.stdin);
        let out = all(&mut program.stdout).await;
        let words: Vec<_> = out.split_whitespace().collect();
        let [first, session, pid] = *words else {
            panic!("{out}")
        };
        assert_eq!((first, session), ("in", pid));
        assert_eq!(all(&mut program.stderr).await, "err\n");
        let status = timeout(SOON, program.guard.wait_for_exit())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(status.code(), Some(3));
    }

    #[tokio::test]
    async fn what_runs_in_the_background_goes_on() {
        let script = "sleep 20 >/dev/null 2>&1 </dev/null & echo $!";
        let mut program = spawn_with_pipes(shell(script)).await.unwrap();
        let pid = all(&mut program.stdout).await;
        timeout(SOON, program.guard.wait_for_exit())
            .await
            .unwrap()
            .unwrap();
        drop(program);
        assert!(lives(pid.trim()));
        let pid = pid
            .trim()
            .parse()
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.unwrap(), Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn hanging_up_ends_the_group_and_dropping_ends_the_deaf() {
        let mut program = spawn_with_pipes(shell("echo $$; sleep 600; :"))
            .await
            .unwrap();
        let mut line = [0; 64];
        let n = program.stdout.read(&mut line).await.unwrap();
        let pid = String::from_utf8_lossy(&line[..n]).trim().to_owned();
        program.guard.signal_group(Signal::HUP);
        timeout(SOON, program.guard.wait_for_exit())
            .await
            .unwrap()
            .unwrap();
        gone(&pid).await;

        let script = "trap '' HUP; echo $$; sleep 600; :";
        let mut program = spawn_with_pipes(shell(script)).await.unwrap();
        let n = program.stdout.read(&mut line).await.unwrap();
        let pid = String::from_utf8_lossy(&line[..n]).trim().to_owned();
        program.guard.signal_group(Signal::HUP);
        assert!(lives(&pid));
        drop(program);
        gone(&pid).await;
    }

    #[tokio::test]
    async fn a_terminal_controls() {
        let size = TerminalSize {
            columns: 91,
            rows: 27,
            ..TerminalSize::default()
        };
        let (terminal, theirs) = PseudoTerminal::open().unwrap();
        terminal.resize(size).unwrap();
        let script = "stty size; tty; read x; echo got $x; exec sleep 600";
        let mut leash = spawn_with_terminal(shell(script), theirs).await.unwrap();
        let mut text = String::new();
        let mut until = async |needle: &str| {
            let mut buffer = [0; 256];
            while !text.contains(needle) {
                let read = timeout(SOON, (&mut &terminal).read(&mut buffer)).await;
                let n = read.unwrap().unwrap();
                assert_ne!(n, 0, "{text}");
                text.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        };
        until("27 91").await;
        until(&terminal.name().to_string_lossy()).await;
        (&mut &terminal).write_all(b"word\n").await.unwrap();
        until("got word").await;
        // Ctrl+C: the line discipline signals the foreground group of the terminal.
        (&mut &terminal).write_all(&[3]).await.unwrap();
        let status = timeout(SOON, leash.wait_for_exit()).await.unwrap().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(2)
        );
        let mut rest = [0; 64];
        while timeout(SOON, (&mut &terminal).read(&mut rest))
            .await
            .unwrap()
            .unwrap()
            > 0
        {}
    }
}
