//! A process of adit with the API at a socket, and what looks at it.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use anyhow::{Context, Result, ensure};

use crate::figures::as_gib;
use crate::load::in_step::OriginInStep;
use crate::load::{LoadDirection, OriginRoute};
use crate::process_cost;

/// The number of sessions that the page asks for.
const SHOWN: u32 = 200;

/// The time after which a process does no more work for a change of its settings, such as writing it to its store.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(1200);
/// The name of the configuration.
const CONFIG: &str = "adit.toml";

/// A process of adit with the API at a socket.
pub(super) struct ManagedProcess {
    pub(super) adit: AditProcess,
    folder: TempFolder,
    listener: String,
}

impl ManagedProcess {
    /// Starts a proxy with these users; without users it needs no login.
    pub(super) fn start_with_users(program: &Path, users: u32) -> Result<Self> {
        let folder = TempFolder::new("bench-users")?;
        let mut text = String::new();
        for number in 0..users {
            let _ = writeln!(text, "user{number:05}:secret{number:05}");
        }
        folder.write_file("proxy.users", text)?;
        let login = if users > 0 { "users=@proxy.users&" } else { "" };
        let listener = format!("mixed://127.0.0.1:0?{login}allow_private=127.0.0.0/8");
        Self::start(program, folder, &listener)
    }

    /// Starts a route with this listener.
    pub(super) fn start(program: &Path, folder: TempFolder, listener: &str) -> Result<Self> {
        let config = folder.write_file(CONFIG, config_text(listener, "info"))?;
        let config = config.to_str().context("the path of a folder")?;
        let mut adit = AditProcess::start_with(program, &["run", "-c", config], 1)?;
        adit.process().wait_lines("api at ", 1, TEST_TIMEOUT)?;
        Ok(Self {
            adit,
            folder,
            listener: listener.to_owned(),
        })
    }

    /// Changes the level of the log.
    pub(super) fn set_log_level(&self, level: &str) -> Result<()> {
        let text = config_text(&self.listener, level);
        self.folder.write_file(CONFIG, text)?;
        ApiConnection::open(&self.socket())?.exchange("POST /v1/reload", "")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("admin.sock")
    }

    /// Writes a file of known hosts with the public key of this file in the folder, and returns its path.
    pub(super) fn write_known_hosts(&self, public_key: &str, at: SocketAddr) -> Result<PathBuf> {
        let key = fs::read_to_string(self.folder.path().join(public_key))?;
        let line = format!("[{}]:{} {key}", at.ip(), at.port());
        self.folder.write_file("known_hosts", line)
    }

    pub(super) fn cpu_time(&mut self) -> Result<Duration> {
        process_cost::cpu_time(self.adit.process().id())
    }

    /// Transfers bytes to or from this origin by a route through the process, and returns its CPU seconds per GiB.
    pub(super) fn transfer_cost(
        &mut self,
        origin: &OriginInStep,
        route: OriginRoute,
        direction: LoadDirection,
        bytes: u64,
    ) -> Result<f64> {
        let before = self.cpu_time()?;
        let moved = origin.transfer(route, direction, bytes)?;
        let spent = self.cpu_time()?.saturating_sub(before).as_secs_f64();
        Ok(spent / as_gib(moved))
    }
}

/// Returns the configuration of a route with this listener.
fn config_text(listener: &str, level: &str) -> String {
    format!(
        "[admin]\nlisten = \"admin.sock\"\n\n[log]\nlevel = \"{level}\"\n\n\
         [route.main]\nlisten = \"{listener}\"\n"
    )
}

/// A connection to the API.
pub(super) struct ApiConnection(BufReader<UnixStream>);

impl ApiConnection {
    pub(super) fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request, and reads the head of its response. Returns the length of its body.
    fn request(&mut self, line: &str, body: &str) -> Result<usize> {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: adit\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(head.as_bytes())?;
        let mut status = String::new();
        self.0.read_line(&mut status)?;
        ensure!(status.starts_with("HTTP/1.1 2"), "{line}: {status}");
        let mut length = 0;
        loop {
            let mut header = String::new();
            ensure!(self.0.read_line(&mut header)? > 0, "{line}: no end");
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                return Ok(length);
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse()?;
            }
        }
    }

    /// Sends a request, and reads the whole response.
    pub(super) fn exchange(&mut self, line: &str, body: &str) -> Result<()> {
        let length = self.request(line, body)?;
        let mut rest = vec![0; length];
        self.0.read_exact(&mut rest)?;
        Ok(())
    }
}

/// The page in a browser while it shows the sessions: it reads the event stream, and asks for the newest
/// sessions at each event.
pub(super) struct DashboardPage {
    has_ended: Arc<AtomicBool>,
    task: JoinHandle<Result<u32>>,
}

impl DashboardPage {
    /// Opens it with these further requests at each event, such as `GET /metrics`.
    pub(super) fn open(socket: &Path, also: &'static [&'static str]) -> Result<Self> {
        let mut events = ApiConnection::open(socket)?;
        events.request("GET /events", "")?;
        let socket = socket.to_owned();
        let mut requests = ApiConnection::open(&socket)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let end = has_ended.clone();
        let task = thread::spawn(move || {
            let mut looks = 0;
            while !end.load(Ordering::Relaxed) {
                let mut line = String::new();
                ensure!(events.0.read_line(&mut line)? > 0, "the stream has ended");
                if line.starts_with("data: ") {
                    let sessions = format!("GET /sessions?limit={SHOWN}");
                    for line in std::iter::once(sessions.as_str()).chain(also.iter().copied()) {
                        // The server ends connections after a while, and a browser opens another one.
                        if requests.exchange(line, "").is_err() {
                            requests = ApiConnection::open(&socket)?;
                            requests.exchange(line, "")?;
                        }
                    }
                    looks += 1;
                }
            }
            Ok(looks)
        });
        Ok(Self { has_ended, task })
    }

    /// Ends, and fails if the page has seen nothing.
    pub(super) fn close(self) -> Result<()> {
        self.has_ended.store(true, Ordering::Relaxed);
        let looks = self
            .task
            .join()
            .map_err(|_| anyhow::anyhow!("the page has failed"))??;
        ensure!(looks > 0, "the page has seen no event");
        Ok(())
    }
}
