//! The processes of a subject, and their processor time.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_net::child::guarded::{self, GuardedGroup};
use adit_net::persistent_file;
use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::subject::{ProcessCommand, Subject};

/// Time for a process to listen.
const START_TIME: Duration = Duration::from_secs(10);
/// Number of attempts to start a process.
const START_TRIES: usize = 3;
/// The end of an output that is kept for errors, in bytes.
const KEPT_OUTPUT: usize = 2048;

/// A folder for files of one run, which is removed at the end.
#[derive(Debug)]
pub(super) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(super) fn create() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("adit-bench-{}", std::process::id()));
        // A folder that exists may belong to another user, who could read the keys in it.
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The running processes of a subject, which end with this value.
pub(super) struct RunningChain {
    /// The client first.
    processes: Vec<RunningProcess>,
    pub(super) addr: SocketAddr,
}

struct RunningProcess {
    guard: GuardedGroup,
    output: OutputTail,
}

/// The end of the output of a process.
#[derive(Debug, Clone, Default)]
struct OutputTail(Arc<Mutex<Vec<u8>>>);

impl RunningChain {
    /// Starts the server and the client, and waits until both listen.
    pub(super) async fn start(subject: &Subject, folder: &ScratchFolder) -> Result<Self> {
        let mut processes = Vec::new();
        let mut server_addr = None;
        if let Some(server) = &subject.server {
            let (process, addr) = start_process(server, None, folder, "server").await?;
            processes.push(process);
            server_addr = Some(addr);
        }
        let (client, addr) = start_process(&subject.client, server_addr, folder, "client").await?;
        processes.insert(0, client);
        Ok(Self { processes, addr })
    }

    /// Returns the processor time of each process, the client first; `None` where the system does not tell it.
    pub(super) fn processor_times(&self) -> Vec<Option<Duration>> {
        let time = |process: &RunningProcess| processor_time(process.guard.id()?);
        self.processes.iter().map(time).collect()
    }

    /// Returns the last output of all processes, for an error.
    pub(super) fn output(&self) -> String {
        let each = self.processes.iter().map(|process| process.output.text());
        each.collect::<Vec<_>>().join("")
    }
}

/// Starts a process. Another program may take its port before it does: it has several tries.
async fn start_process(
    command: &ProcessCommand,
    server: Option<SocketAddr>,
    folder: &ScratchFolder,
    role: &str,
) -> Result<(RunningProcess, SocketAddr)> {
    for _ in 1..START_TRIES {
        if let Ok(started) = try_to_start(command, server, folder, role).await {
            return Ok(started);
        }
    }
    try_to_start(command, server, folder, role).await
}

async fn try_to_start(
    command: &ProcessCommand,
    server: Option<SocketAddr>,
    folder: &ScratchFolder,
    role: &str,
) -> Result<(RunningProcess, SocketAddr)> {
    let addr = free_address()?;
    let fill = |text: &str| {
        let port = server.map_or_else(String::new, |server| server.port().to_string());
        let listen = addr.port().to_string();
        // In JSON a port is a number.
        text.replace("\"{listen}\"", &listen)
            .replace("\"{server}\"", &port)
            .replace("{listen}", &listen)
            .replace("{server}", &port)
    };
    let file = folder.path(&format!("{role}.json"));
    if let Some(text) = &command.file {
        persistent_file::write_atomically(&file, fill(text).as_bytes())
            .with_context(|| format!("writing {}", file.display()))?;
    }
    let args = command
        .args
        .iter()
        .map(|arg| fill(arg).replace("{file}", &file.to_string_lossy()));
    let mut run = Command::new(&command.program);
    run.args(args);
    let child = guarded::spawn_guarded(run).await;
    let child = child.with_context(|| format!("starting {}", command.program))?;
    let output = OutputTail::default();
    tokio::spawn(keep_tail(child.stdout, output.clone()));
    tokio::spawn(keep_tail(child.stderr, output.clone()));
    let process = RunningProcess {
        guard: child.guard,
        output,
    };
    wait_until_ready(addr, &process, &command.program).await?;
    Ok((process, addr))
}

/// Waits until a process listens. A carrier over UDP has no such sign: it is ready when it says so.
async fn wait_until_ready(addr: SocketAddr, process: &RunningProcess, program: &str) -> Result<()> {
    let until = Instant::now() + START_TIME;
    while Instant::now() < until {
        let says_so = process
            .output
            .text()
            .contains(&format!("listening on {addr}"));
        if says_so || TcpStream::connect(addr).await.is_ok() {
            return Ok(());
        }
        if process.guard.id().is_none() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!(
        "{program} does not listen; its output:\n{}",
        process.output.text()
    );
}

/// Returns an address that is free at the moment.
fn free_address() -> Result<SocketAddr> {
    let holder = TcpListener::bind("127.0.0.1:0").context("finding a free port")?;
    Ok(holder.local_addr()?)
}

/// Reads an output to its end, and keeps the last part.
async fn keep_tail(mut from: impl AsyncRead + Unpin, tail: OutputTail) {
    let mut chunk = [0; 1024];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let mut kept = tail.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(adit_wire::subslice(&chunk, ..count));
        let surplus = kept.len().saturating_sub(KEPT_OUTPUT);
        kept.drain(..surplus);
    }
}

impl OutputTail {
    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// Returns the processor time of all threads of a process, also of those that have ended.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn processor_time(id: u32) -> Option<Duration> {
    let id = nix::unistd::Pid::from_raw(id.try_into().ok()?);
    let clock = nix::time::clock_getcpuclockid(id).ok()?;
    Some(nix::time::clock_gettime(clock).ok()?.into())
}

/// Returns nothing: the system has no such clock of another process.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const fn processor_time(_: u32) -> Option<Duration> {
    None
}
