//! The second part of suite `users`: what quotas cost on the path of bytes, and the dashboard beside many sessions, each
//! beside the same process without it, in turn.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use anyhow::{Context, Result, ensure};

use super::Suite;
use super::rounds::{BenchRun, CaseFigures};
use crate::args::LoadAmounts;
use crate::connection_holder::HolderProcess;
use crate::figures::{CPU_PER_GIB, CPU_SHARE, as_gib, whole_figure};
use crate::load::content::CheckMode;
use crate::load::origin::{LoadOrigin, OriginService};
use crate::load::tcp::transfer;
use crate::load::{LoadDirection, OriginRoute};
use crate::process_cost;

/// Number of users of the server.
const USERS: u32 = 10_000;
/// The user who transfers.
const LOGIN: (&str, &str) = ("user00042", "secret00042");
/// The quota of each user, which no one uses up.
const QUOTA: u64 = 1 << 50;
/// Number of open sessions beside the dashboard.
const SESSIONS: u32 = 10_000;
/// Time over which the share of a processor is measured.
const WATCH_TIME: Duration = Duration::from_secs(10);
/// The number of sessions that the page asks for.
const SHOWN: u32 = 200;

/// Measures both, with and without, in every round.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let adit = bench.peers.iter().find(|peer| peer.name() == "adit");
    let Some(program) = adit.and_then(|peer| peer.program()).map(Path::to_owned) else {
        return;
    };
    let (amounts, smoke) = (bench.settings.amounts(), bench.settings.smoke);
    let users = if smoke { 100 } else { USERS };
    for round in 1..=bench.settings.rounds() {
        // The second one of a pair would always find a warmer machine.
        let mut pair = [false, true];
        if round % 2 == 0 {
            pair.reverse();
        }
        for has_quotas in pair {
            let who = match has_quotas {
                true => "10,000 users with quotas",
                false => "10,000 users without quotas",
            };
            let case = "transfers of one user";
            match measure_quotas(&program, users, has_quotas, amounts) {
                Ok(cases) => {
                    for (case, figures) in cases {
                        let journal = &mut bench.journal;
                        journal.record_outcome(Suite::Users, &case, who, round, Ok(figures));
                    }
                }
                Err(why) => {
                    let journal = &mut bench.journal;
                    journal.record_outcome(Suite::Users, case, who, round, Err(why));
                }
            }
        }
        for is_watched in pair {
            let who = match is_watched {
                true => "the dashboard is open",
                false => "the dashboard is closed",
            };
            let (sessions, time) = match smoke {
                true => (100, Duration::from_secs(1)),
                false => (SESSIONS, WATCH_TIME),
            };
            let outcome = measure_dashboard(&program, sessions, is_watched, time);
            let outcome = outcome.map(|share| vec![whole_figure(CPU_SHARE, share)]);
            let case = "10,000 idle sessions";
            bench
                .journal
                .record_outcome(Suite::Users, case, who, round, outcome);
        }
    }
}

/// A process of adit with the API at a socket.
struct ManagedProcess {
    adit: AditProcess,
    folder: TempFolder,
}

impl ManagedProcess {
    /// Starts a proxy with these users; without users it needs no login.
    fn start(program: &Path, users: u32) -> Result<Self> {
        let folder = TempFolder::new("bench-users")?;
        let mut text = String::new();
        for number in 0..users {
            let _ = writeln!(text, "user{number:05}:secret{number:05}");
        }
        folder.write_file("proxy.users", text)?;
        let login = if users > 0 { "users=@proxy.users&" } else { "" };
        let config = format!(
            "[admin]\nlisten = \"admin.sock\"\n\n[route.main]\n\
             listen = \"mixed://127.0.0.1:0?{login}allow_private=127.0.0.0/8\"\n"
        );
        let config = folder.write_file("adit.toml", config)?;
        let config = config.to_str().context("the path of a folder")?;
        let mut adit = AditProcess::start_with(program, &["run", "-c", config], 1)?;
        adit.process().wait_lines("api at ", 1, TEST_TIMEOUT)?;
        Ok(Self { adit, folder })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("admin.sock")
    }

    fn cpu_time(&mut self) -> Result<Duration> {
        process_cost::cpu_time(self.adit.process().id())
    }
}

/// A connection to the API.
struct ApiConnection(BufReader<UnixStream>);

impl ApiConnection {
    fn open(socket: &Path) -> Result<Self> {
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
    fn exchange(&mut self, line: &str, body: &str) -> Result<()> {
        let length = self.request(line, body)?;
        let mut rest = vec![0; length];
        self.0.read_exact(&mut rest)?;
        Ok(())
    }
}

/// Transfers as one of many users, and returns the cost of each direction.
fn measure_quotas(
    program: &Path,
    users: u32,
    has_quotas: bool,
    amounts: LoadAmounts,
) -> Result<CaseFigures> {
    let mut managed = ManagedProcess::start(program, users)?;
    if has_quotas {
        let mut api = ApiConnection::open(&managed.socket())?;
        let limits = format!("{{\"quota\":{QUOTA},\"period\":\"month\"}}");
        for number in 0..users {
            api.exchange(&format!("PUT /accounts/user{number:05}/limits"), &limits)?;
        }
    }
    let origin = LoadOrigin::start(OriginService::Streams)?;
    let way = OriginRoute::Login {
        proxy: managed.adit.addr(),
        to: origin.addr(),
        login: LOGIN,
    };
    for direction in LoadDirection::BOTH {
        transfer(way, direction, amounts.warm_up, 1, CheckMode::Whole).context("warm-up")?;
    }
    let mut cases = CaseFigures::new();
    for direction in LoadDirection::BOTH {
        let before = managed.cpu_time()?;
        let moved = transfer(way, direction, amounts.bytes, 1, CheckMode::Sampled)?;
        let spent = managed.cpu_time()?.saturating_sub(before).as_secs_f64();
        let cost = whole_figure(CPU_PER_GIB, spent / as_gib(moved.bytes));
        cases.push((format!("transfers of one user, {direction}"), vec![cost]));
    }
    Ok(cases)
}

/// Returns the share of a core, in percent, that a process with idle sessions uses.
fn measure_dashboard(
    program: &Path,
    sessions: u32,
    is_watched: bool,
    time: Duration,
) -> Result<f64> {
    let mut managed = ManagedProcess::start(program, 0)?;
    let proxy: SocketAddr = managed.adit.addr();
    let mut holder = HolderProcess::start(proxy, sessions, 0)?;
    holder.wait_until_open()?;
    let page = match is_watched {
        true => Some(DashboardPage::open(&managed.socket())?),
        false => None,
    };
    // The first look is larger than the others.
    sleep(Duration::from_secs(2));
    let (begun, before) = (Instant::now(), managed.cpu_time()?);
    sleep(time);
    let spent = managed.cpu_time()?.saturating_sub(before).as_secs_f64();
    let share = spent * 100.0 / begun.elapsed().as_secs_f64();
    if let Some(page) = page {
        page.close()?;
    }
    drop(holder);
    Ok(share)
}

/// The page in a browser while it shows the sessions: it reads the event stream, and asks for the newest
/// sessions at each event.
struct DashboardPage {
    has_ended: Arc<AtomicBool>,
    task: JoinHandle<Result<u32>>,
}

impl DashboardPage {
    fn open(socket: &Path) -> Result<Self> {
        let mut events = ApiConnection::open(socket)?;
        events.request("GET /events", "")?;
        let mut requests = ApiConnection::open(socket)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let end = has_ended.clone();
        let task = thread::spawn(move || {
            let mut looks = 0;
            while !end.load(Ordering::Relaxed) {
                let mut line = String::new();
                ensure!(events.0.read_line(&mut line)? > 0, "the stream has ended");
                if line.starts_with("data: ") {
                    requests.exchange(&format!("GET /sessions?limit={SHOWN}"), "")?;
                    looks += 1;
                }
            }
            Ok(looks)
        });
        Ok(Self { has_ended, task })
    }

    /// Ends, and fails if the page has seen nothing.
    fn close(self) -> Result<()> {
        self.has_ended.store(true, Ordering::Relaxed);
        let looks = self
            .task
            .join()
            .map_err(|_| anyhow::anyhow!("the page has failed"))??;
        ensure!(looks > 0, "the page has seen no event");
        Ok(())
    }
}
