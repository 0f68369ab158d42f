//! The latency of small requests while other traffic uses the same path.
//!
//! One connection sends a few bytes, waits until they come back, and repeats. The load beside it
//! comes from the origin, through the same processes, on separate connections.
//!
//! The threads that send and answer the echoes request short time slices: in reality they run on
//! other machines, and their wait for a processor that the flows of the load keep busy is not the
//! relay's.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::content::CHUNK;
use super::tcp::{RequestHeader, StreamRequest};
use super::{OriginRoute, tcp};
use crate::short_turns;

/// Bytes of a request, and of its answer.
const ECHO_LEN: usize = 9;
/// Minimum number of echoes, however long they take.
const MIN_ECHOES: usize = 3;
/// Bytes of a small download, and the pause of its client before the next one.
const DOWNLOAD_LEN: u64 = 64 << 10;
const DOWNLOAD_PAUSE: Duration = Duration::from_millis(200);
/// Interval at which a paced flow sends.
const FLOW_TICK: Duration = Duration::from_millis(2);
/// Time until the flows beside the echoes run at their rate.
const SETTLE: Duration = Duration::from_millis(500);

/// Serves echoes, as the origin.
pub(super) fn serve_echo(mut stream: TcpStream) -> io::Result<()> {
    short_turns::request_short_slices()?;
    let mut buf = [0; ECHO_LEN];
    loop {
        stream.read_exact(&mut buf)?;
        stream.write_all(&buf)?;
    }
}

/// Serves a flow of `rate` bytes per second as the origin, or as fast as possible if `rate` is 0.
///
/// A backlog after a standstill is dropped: the flow models a source of this rate, not a burst.
pub(super) fn serve_flow(mut stream: TcpStream, rate: u64) -> io::Result<()> {
    if rate == 0 {
        return tcp::send_content(&mut stream, u64::MAX);
    }
    let each = rate / 1000 * FLOW_TICK.as_millis() as u64;
    let mut due = Instant::now();
    loop {
        tcp::send_content(&mut stream, each)?;
        due = (due + FLOW_TICK).max(Instant::now() - 4 * FLOW_TICK);
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// The load beside the echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackgroundLoad {
    Idle,
    /// This number of flows with this rate each, in bytes per second; 0 means as fast as possible.
    Flows(u32, u64),
    /// This number of clients that download 64 KiB, pause for 200 ms and repeat.
    Downloads(u32),
}

/// The result of a measurement.
#[derive(Debug)]
pub(crate) struct EchoTimes {
    /// Times of the echoes in milliseconds, the shortest first.
    times: Vec<f64>,
    /// Rate of the load beside them, in bytes per second.
    pub(crate) background_rate: f64,
}

impl EchoTimes {
    /// Returns the time that this share of the echoes did not exceed, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> Result<f64> {
        let last = self.times.len().saturating_sub(1);
        let place = (last as f64 * share).ceil() as usize;
        self.times
            .get(place.min(last))
            .copied()
            .context("no echo was measured")
    }
}

/// Measures successive echoes for this long, with this load beside them.
pub(crate) fn measure_echoes(
    way: OriginRoute,
    beside: BackgroundLoad,
    long: Duration,
) -> Result<EchoTimes> {
    let (stop, got) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (stop, got) = (&stop, &got);
        let clients = match beside {
            BackgroundLoad::Idle => 0,
            BackgroundLoad::Flows(count, _) | BackgroundLoad::Downloads(count) => count,
        };
        let others: Vec<_> = (0..clients)
            .map(|number| {
                scope.spawn(move || match beside {
                    BackgroundLoad::Flows(_, rate) => receive_flow(way, rate, stop, got),
                    _ => run_downloads(way, number, stop, got),
                })
            })
            .collect();
        let settle = if clients == 0 { Duration::ZERO } else { SETTLE };
        thread::sleep(settle.min(long));
        let before = (Instant::now(), got.load(Ordering::Relaxed));
        let times = scope.spawn(move || run_echoes(way, long)).join();
        let took = before.0.elapsed().as_secs_f64();
        let bytes = got.load(Ordering::Relaxed) - before.1;
        stop.store(true, Ordering::Relaxed);
        for other in others {
            let ended = other
                .join()
                .map_err(|_| anyhow!("a client's thread panicked"))?;
            ended.context("the load beside the echoes failed")?;
        }
        let mut times = times.map_err(|_| anyhow!("the thread of the echoes panicked"))??;
        times.sort_by(f64::total_cmp);
        Ok(EchoTimes {
            times,
            background_rate: bytes as f64 / took,
        })
    })
}

fn run_echoes(way: OriginRoute, long: Duration) -> Result<Vec<f64>> {
    short_turns::request_short_slices()?;
    let mut stream = way.dial()?;
    stream.write_all(&RequestHeader::new(StreamRequest::Echo, 0).encode())?;
    let (mut times, mut back) = (Vec::new(), [0; ECHO_LEN]);
    let start = Instant::now();
    let mut number = 0u64;
    while start.elapsed() < long || times.len() < MIN_ECHOES {
        let mut said = [b'.'; ECHO_LEN];
        said[..8].copy_from_slice(&number.to_be_bytes());
        let began = Instant::now();
        stream.write_all(&said)?;
        stream.read_exact(&mut back)?;
        ensure!(back == said, "different bytes came back");
        // The first echo includes opening the connection.
        if number > 0 {
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        number += 1;
    }
    Ok(times)
}

fn receive_flow(way: OriginRoute, rate: u64, stop: &AtomicBool, got: &AtomicU64) -> Result<()> {
    let mut stream = way.dial()?;
    stream.write_all(&RequestHeader::new(StreamRequest::Flow, rate).encode())?;
    let mut buf = vec![0; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        let n = stream.read(&mut buf)?;
        ensure!(n > 0, "a flow ended early");
        got.fetch_add(n as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn run_downloads(way: OriginRoute, number: u32, stop: &AtomicBool, got: &AtomicU64) -> Result<()> {
    // The downloads start at different moments.
    thread::sleep(DOWNLOAD_PAUSE * (number % 64) / 64);
    let mut buf = vec![0; DOWNLOAD_LEN as usize];
    while !stop.load(Ordering::Relaxed) {
        let mut stream = way.dial()?;
        stream.write_all(&RequestHeader::new(StreamRequest::Download, DOWNLOAD_LEN).encode())?;
        stream.read_exact(&mut buf)?;
        got.fetch_add(DOWNLOAD_LEN, Ordering::Relaxed);
        drop(stream);
        thread::sleep(DOWNLOAD_PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::origin::{LoadOrigin, OriginService};

    #[test]
    fn echoes_are_timed_beside_others() {
        let origin = LoadOrigin::start(OriginService::Streams).unwrap();
        let way = OriginRoute::Entry(origin.addr());
        for (beside, millis) in [
            (BackgroundLoad::Idle, 60),
            (BackgroundLoad::Flows(2, 0), 60),
            (BackgroundLoad::Flows(2, 10_000_000), 60),
            // A client that has just been served pauses.
            (BackgroundLoad::Downloads(3), 300),
        ] {
            let latency = measure_echoes(way, beside, Duration::from_millis(millis)).unwrap();
            let [p50, p99] = [0.5, 0.99].map(|share| latency.quantile(share).unwrap());
            assert!(0.0 < p50 && p50 <= p99, "{latency:?}");
            assert_eq!(
                latency.background_rate == 0.0,
                beside == BackgroundLoad::Idle
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted() {
        let latency = EchoTimes {
            times: (1..=1000).map(f64::from).collect(),
            background_rate: 0.0,
        };
        let quantile = |share| latency.quantile(share).unwrap();
        assert_eq!(
            [0.0, 0.5, 0.99, 0.999, 1.0].map(quantile),
            [1.0, 501.0, 991.0, 1000.0, 1000.0]
        );
    }
}
