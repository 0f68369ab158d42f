//! Connections and flows whose bytes come back from an echo and are compared.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use adit_interop::TEST_TIMEOUT;
use adit_interop::socks_client::{self, Destination};
use anyhow::{Context, Result, ensure};

/// Size of one exchange of a bulk flow, and its interval: all flows together leave time for the connections.
const CHUNK: usize = 16 << 10;
const INTERVAL: Duration = Duration::from_millis(20);
/// Payload of a short connection, in bytes.
const SHORT: usize = 1024;
/// Number of threads that open connections.
const WORKERS: u32 = 8;

/// A stream to the echo of the origin.
pub(crate) struct EchoStream(TcpStream);

impl EchoStream {
    /// Asks the origin for an echo.
    pub(crate) fn new(mut stream: TcpStream) -> Result<Self> {
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        stream.write_all(b"ECHO\n")?;
        Ok(Self(stream))
    }

    pub(crate) fn open(proxy: SocketAddr, target: &Destination) -> Result<Self> {
        Self::new(socks_client::connect_through(proxy, None, target)?)
    }

    /// Sends bytes and compares those that come back.
    pub(crate) fn exchange(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).context("sending")?;
        let mut back = vec![0; bytes.len()];
        self.0.read_exact(&mut back).context("receiving")?;
        ensure!(back == bytes, "other bytes came back");
        Ok(())
    }

    /// Returns true if the other side ends the stream.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> bool {
        let limited = self.0.set_read_timeout(Some(limit));
        let timed_out = |why: &io::Error| {
            matches!(
                why.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            )
        };
        limited.is_ok()
            && match self.0.read(&mut [0]) {
                Ok(n) => n == 0,
                Err(why) => !timed_out(&why),
            }
    }
}

/// Returns the bytes of one exchange.
fn pattern(round: u64, len: usize) -> Vec<u8> {
    let mut state = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A flow that lasts until it is stopped.
pub(crate) struct BulkFlow {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl BulkFlow {
    pub(crate) fn start(proxy: SocketAddr, target: &Destination) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut stream = EchoStream::open(proxy, target).unwrap();
        let ended = stop.clone();
        let thread = thread::spawn(move || {
            let mut round = 0;
            while !ended.load(Ordering::Relaxed) {
                let bytes = pattern(round, CHUNK);
                let place = || format!("through {proxy}, after {round} exchanges");
                stream.exchange(&bytes).with_context(place)?;
                round += 1;
                sleep(INTERVAL);
            }
            Ok(round * CHUNK as u64)
        });
        Self { stop, thread }
    }

    /// Ends the flow. Returns the number of bytes that came back.
    pub(crate) fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// New connections at a constant rate, through several entries in turn.
pub(crate) struct Connections {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<LoadResult>>,
}

/// The result of new connections.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    pub(crate) opened: u32,
    /// The same, through each entry.
    pub(crate) opened_at: [u32; 2],
    /// Refused, reset, or with other bytes.
    pub(crate) failures: Vec<String>,
}

impl Connections {
    pub(crate) fn start(entries: &[SocketAddr], target: &Destination, rate: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let interval = Duration::from_secs(1) * WORKERS / rate;
        let worker = |number: u32| {
            let (entries, target, ended) = (entries.to_vec(), target.clone(), stop.clone());
            thread::spawn(move || {
                let mut done = LoadResult::default();
                let begun = Instant::now() + interval * number / WORKERS;
                for round in 0.. {
                    let due = begun + interval * round;
                    sleep(due.saturating_duration_since(Instant::now()));
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let at = usize::from((round + number) % 2 == 1);
                    let bytes = pattern(u64::from(round), SHORT);
                    let tried = EchoStream::open(entries[at], &target)
                        .and_then(|mut stream| stream.exchange(&bytes));
                    done.opened += 1;
                    done.opened_at[at] += 1;
                    if let Err(why) = tried {
                        done.failures.push(format!("{}: {why:#}", entries[at]));
                    }
                }
                done
            })
        };
        Self {
            threads: (0..WORKERS).map(worker).collect(),
            stop,
        }
    }

    /// Ends the load, and returns its result.
    pub(crate) fn stop(self) -> LoadResult {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = LoadResult::default();
        for thread in self.threads {
            let one = thread.join().unwrap();
            all.opened += one.opened;
            for (sum, n) in all.opened_at.iter_mut().zip(one.opened_at) {
                *sum += n;
            }
            all.failures.extend(one.failures);
        }
        all
    }
}

impl LoadResult {
    /// Checks that no connection has failed, and that at least half of `rate` connections per second were opened.
    #[track_caller]
    pub(crate) fn assert_lossless(&self, took: Duration, rate: u32) {
        assert_eq!(self.failures, Vec::<String>::new(), "of {}", self.opened);
        let least = took.as_secs_f64() * f64::from(rate) * 0.5;
        assert!(
            f64::from(self.opened) > least,
            "{} in {took:?}",
            self.opened
        );
    }
}

/// Ends flows, and checks that each of them has carried bytes, all of them right.
#[track_caller]
pub(crate) fn stop_working_flows(flows: impl IntoIterator<Item = BulkFlow>) {
    for flow in flows {
        let bytes = flow.stop().unwrap();
        assert!(bytes > 100_000, "a flow has only carried {bytes} bytes");
    }
}
