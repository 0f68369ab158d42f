//! A process with users and their limits, and the server that they reach.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adit_admin::user_store::UserStore;
use adit_engine::{ByteCounts, StoredUser, Usage, UserLimits};
use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use adit_wire::UnixTime;

use crate::setup::bin;

/// One mebibyte.
pub(super) const MIB: u64 = 1 << 20;

/// Time within which the live sessions of a user end: the promise is one second, and the clock of the test has a share.
pub(super) const CUT_WITHIN: Duration = Duration::from_millis(1200);

/// A running process with a store.
pub(super) struct World {
    pub(super) folder: TempFolder,
    pub(super) adit: AditProcess,
}

impl World {
    /// Starts these listeners for users with these limits.
    pub(super) fn start(users: &[(&str, UserLimits)], listeners: &[&str]) -> Self {
        Self::start_with_interval(users, listeners, "1s")
    }

    pub(super) fn start_with_interval(
        users: &[(&str, UserLimits)],
        listeners: &[&str],
        interval: &str,
    ) -> Self {
        let folder = TempFolder::new("limits").unwrap();
        let user = |(name, limits): &(&str, UserLimits)| StoredUser {
            name: (*name).to_owned(),
            limits: *limits,
            period_start: UnixTime(0),
            before_period: ByteCounts::default(),
            total: Usage::default(),
        };
        let mut stored: Vec<_> = users.iter().map(user).collect();
        stored.sort_by(|a, b| a.name.cmp(&b.name));
        let store = UserStore::open(&folder.path().join("users.redb")).unwrap();
        store.write(stored).unwrap();
        drop(store);
        let listeners: Vec<String> = listeners.iter().map(|url| format!("{url:?}")).collect();
        let count = listeners.len();
        let listeners = listeners.join(", ");
        let text = format!(
            "[admin]\nlisten = \"admin.sock\"\nstore = \"users.redb\"\nstore_interval = \"{interval}\"\n\
             [route.a]\nlisten = [{listeners}]\n"
        );
        folder.write_file("adit.toml", text).unwrap();
        let adit = Self::run(&folder, count);
        Self { folder, adit }
    }

    /// Starts a process with the file of a folder.
    pub(super) fn run(folder: &TempFolder, listeners: usize) -> AditProcess {
        let file = folder.path().join("adit.toml");
        let args = ["run", "-c", file.to_str().unwrap()];
        AditProcess::start_with(&bin(), &args, listeners).unwrap()
    }

    pub(super) fn store_path(&self) -> PathBuf {
        self.folder.path().join("users.redb")
    }

    /// Waits for a line of the log.
    #[track_caller]
    pub(super) fn wait_for(&mut self, text: &str) {
        self.adit
            .process()
            .wait_lines(text, 1, TEST_TIMEOUT)
            .unwrap();
    }

    /// Stops the process. Returns its log, and what it has stored of a user.
    pub(super) fn stop(mut self, user: &str) -> (String, StoredUser) {
        let status = self.adit.process().terminate().unwrap();
        assert!(status.success(), "{status}");
        let log = self.adit.process().output();
        (log, stored(&self.folder, user))
    }
}

/// Returns what is stored of a user while no process has the store open.
pub(super) fn stored(folder: &TempFolder, user: &str) -> StoredUser {
    let store = UserStore::open(&folder.path().join("users.redb")).unwrap();
    let aside = fs::read_dir(folder.path()).unwrap();
    let aside = aside.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().contains(".damaged-")
    });
    assert_eq!(aside.count(), 0, "the store was damaged");
    let mut known = store.users().iter();
    known.find(|known| known.name == user).unwrap().clone()
}

/// A server that sends forever after a request that begins with `GET`, and reads anything else to its end.
pub(crate) struct ByteServer {
    pub(crate) addr: SocketAddr,
    received: Arc<AtomicU64>,
}

impl ByteServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let counter = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = counter.clone();
                // An error is a stream that was cut.
                thread::spawn(move || serve(stream, &counter));
            }
        });
        Self { addr, received }
    }

    /// Returns the number of bytes that it has read.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    /// Returns the URL of its endless document.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }
}

fn serve(mut stream: TcpStream, counter: &AtomicU64) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    let n = stream.read(&mut bytes)?;
    counter.fetch_add(n as u64, Ordering::SeqCst);
    if bytes.starts_with(b"GET") {
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        loop {
            stream.write_all(&bytes)?;
        }
    }
    loop {
        match stream.read(&mut bytes)? {
            0 => return stream.shutdown(Shutdown::Both),
            n => counter.fetch_add(n as u64, Ordering::SeqCst),
        };
    }
}

/// Requests the endless document, and reads until the stream is cut. Returns the number of bytes.
pub(super) fn download(stream: &mut TcpStream) -> u64 {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    if stream.write_all(b"GET / HTTP/1.1\r\n\r\n").is_err() {
        return 0;
    }
    read_until_cut(stream)
}

/// Reads until the stream ends or is reset; a stream that is silent instead is a failure.
#[track_caller]
pub(super) fn read_until_cut(stream: &mut TcpStream) -> u64 {
    let (mut bytes, mut sum) = (vec![0; 64 << 10], 0);
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return sum,
            Ok(n) => sum += n as u64,
            Err(why) => {
                let silent = [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut];
                assert!(
                    !silent.contains(&why.kind()),
                    "silent after {sum} bytes: {why}"
                );
                return sum;
            }
        }
    }
}

/// Reads for this time. Returns bytes per second.
pub(super) fn read_rate(stream: &mut TcpStream, time: Duration) -> f64 {
    let (mut bytes, mut sum, since) = (vec![0; 64 << 10], 0, Instant::now());
    while since.elapsed() < time {
        sum += stream.read(&mut bytes).unwrap();
    }
    sum as f64 / since.elapsed().as_secs_f64()
}

/// Runs curl through a proxy, and returns `CODE CONNECT-CODE BYTES` as its output.
pub(super) fn curl(proxy: &str, more: &[&str], url: &str) -> ToolOutput {
    let mut command = Command::new("curl");
    command.args([
        "-q",
        "-sS",
        "--max-time",
        "60",
        "--noproxy",
        "",
        "-x",
        proxy,
    ]);
    command.args([
        "-o",
        "/dev/null",
        "-w",
        "%{http_code} %{http_connect} %{size_download}\n",
    ]);
    command.args(more).arg(url);
    external_tools::run_to_end(command, Duration::from_secs(70)).unwrap()
}
