//! A user who sends bytes through a node to a sink, again and again.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use adit_fleet::FleetUser;
use adit_interop::socks_client::{self, Destination};
use anyhow::Result;

/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);
/// Size of a piece.
const PIECE: usize = 16 << 10;

/// Opens a stream of a user through the SOCKS5 listener of a node.
pub fn open_stream(node: SocketAddr, user: &FleetUser, to: SocketAddr) -> Result<TcpStream> {
    let password = user.password();
    let login = Some((user.name.as_str(), password.as_str()));
    socks_client::connect_through(node, login, &Destination::Addr(to))
}

/// A running upload. It ends when it is dropped.
#[derive(Debug)]
pub struct Upload {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_stopped: AtomicBool,
    sent: AtomicU64,
    streams: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
}

/// The counts of an upload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UploadCounts {
    /// Bytes that the kernel has taken.
    pub sent: u64,
    /// Streams that were opened.
    pub streams: u64,
    /// Attempts that failed.
    pub refused: u64,
    /// Streams that ended before the upload did.
    pub broken: u64,
}

impl Upload {
    /// Starts to send `rate` bytes per second through a node; as fast as possible for 0.
    #[must_use]
    pub fn start(node: SocketAddr, user: &FleetUser, to: SocketAddr, rate: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let (own, user) = (shared.clone(), user.clone());
        let thread = thread::spawn(move || send_until_stopped(&own, node, &user, to, rate));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Returns what it has done so far.
    #[must_use]
    pub fn counts(&self) -> UploadCounts {
        let get = |count: &AtomicU64| count.load(Ordering::SeqCst);
        UploadCounts {
            sent: get(&self.shared.sent),
            streams: get(&self.shared.streams),
            refused: get(&self.shared.refused),
            broken: get(&self.shared.broken),
        }
    }

    /// Ends the upload, and returns what it has done.
    pub fn stop(mut self) -> UploadCounts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.end();
    }
}

fn send_until_stopped(
    shared: &Shared,
    node: SocketAddr,
    user: &FleetUser,
    to: SocketAddr,
    rate: u64,
) {
    let add = |count: &AtomicU64, more: u64| count.fetch_add(more, Ordering::SeqCst);
    while !shared.is_stopped.load(Ordering::SeqCst) {
        let Ok(mut stream) = open_stream(node, user, to) else {
            add(&shared.refused, 1);
            thread::sleep(RETRY);
            continue;
        };
        add(&shared.streams, 1);
        // A write that waits is looked at again, so that the upload can be stopped.
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let (piece, start, mut sent) = ([b'u'; PIECE], Instant::now(), 0);
        while !shared.is_stopped.load(Ordering::SeqCst) {
            match stream.write(&piece) {
                Ok(n) => {
                    add(&shared.sent, n as u64);
                    sent += n as u64;
                }
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => {
                    add(&shared.broken, 1);
                    break;
                }
            }
            if let Some(due) = (sent * 1000).checked_div(rate) {
                let wait = Duration::from_millis(due).saturating_sub(start.elapsed());
                thread::sleep(wait.min(RETRY));
            }
        }
    }
}
