//! Many concurrent probes, and a test whether their ends can be told apart.
//!
//! [`run_probes`] starts probes from one thread in a random order: anything that slows the machine for
//! a moment then affects all causes alike, and only the server can make a difference between them.
//! [`find_distinguishable_cause`] looks for such a difference.

mod distribution_test;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::hostile_clients::{AfterWrite, Reaction, WriteMode};
use crate::test_pattern::BytePattern;
use crate::traffic::connect_directly;

pub use distribution_test::{Outlier, TimingSample, find_distinguishable_cause, ks_p_value};

/// Time between the bytes of a slow probe.
const BYTE_INTERVAL: Duration = Duration::from_millis(1);
/// Probes that start in one batch, before the others are polled again.
const START_BATCH: usize = 8;
/// Number of bytes kept of an answer.
const KEPT_ANSWER_LEN: usize = 64;

/// One probe.
#[derive(Debug, Clone, Copy)]
pub struct ProbePlan<'a> {
    /// Bytes to send.
    pub bytes: &'a [u8],
    /// The way in which they are sent.
    pub mode: WriteMode,
    /// The action that follows.
    pub after_write: AfterWrite,
}

/// The outcome of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOutcome {
    /// The reaction it saw; an answer counts more than the end that follows it.
    pub reaction: Reaction,
    /// The first bytes of an answer.
    pub answer: Vec<u8>,
    /// Time from before it connected until the end, or for as long as it waited.
    pub elapsed: Duration,
}

/// Runs all `probes` and watches each for `timeout`, with at most `max_concurrent` of them in flight.
/// Returns their outcomes in the order of `probes`; `seed` determines the order in which they start.
pub fn run_probes(
    addr: SocketAddr,
    probes: &[ProbePlan<'_>],
    max_concurrent: usize,
    timeout: Duration,
    seed: u64,
) -> Result<Vec<ProbeOutcome>> {
    let mut waiting = shuffle_indices(probes.len(), seed);
    let mut done: Vec<Option<ProbeOutcome>> = probes.iter().map(|_| None).collect();
    let mut in_flight: Vec<ProbeInFlight<'_>> = Vec::new();
    while !(waiting.is_empty() && in_flight.is_empty()) {
        for _ in 0..START_BATCH.min(max_concurrent.saturating_sub(in_flight.len())) {
            let Some(index) = waiting.pop() else { break };
            let mut running = ProbeInFlight::start(addr, index, &probes[index])?;
            if running.is_finished() {
                done[index] = Some(running.take_outcome(Reaction::Silence));
            } else {
                in_flight.push(running);
            }
        }
        let busy = !waiting.is_empty() && in_flight.len() < max_concurrent;
        let slow = in_flight.iter().any(|running| !running.unsent.is_empty());
        let wait = match (busy, slow) {
            (true, _) => Duration::ZERO,
            (_, true) => BYTE_INTERVAL,
            _ => Duration::from_millis(50),
        };
        let ready = poll_readable(&in_flight, wait)?;
        let now = Instant::now();
        let mut still_running = Vec::with_capacity(in_flight.len());
        for (mut running, ready) in in_flight.into_iter().zip(ready) {
            match running.advance(now, ready, timeout) {
                Some(outcome) => done[running.index] = Some(outcome),
                None => still_running.push(running),
            }
        }
        in_flight = still_running;
    }
    done.into_iter()
        .map(|outcome| outcome.context("a probe was never started"))
        .collect()
}

/// Raises the descriptor limit of this process, and of those it starts, to the system's maximum.
pub fn raise_descriptor_limit() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, all).context("cannot raise the limit of descriptors")
}

/// Returns the numbers below `len` in random order.
fn shuffle_indices(len: usize, seed: u64) -> Vec<usize> {
    let mut rng = BytePattern::new(seed);
    let mut keyed: Vec<_> = (0..len).map(|n| (rng.next_bytes(8), n)).collect();
    keyed.sort();
    keyed.into_iter().map(|(_, n)| n).collect()
}

/// Returns which of them are readable, once one is or the time has elapsed.
fn poll_readable(in_flight: &[ProbeInFlight<'_>], wait: Duration) -> Result<Vec<bool>> {
    let mut fds: Vec<_> = in_flight
        .iter()
        .map(|running| PollFd::new(&running.stream, PollFlags::IN))
        .collect();
    let wait = Timespec::try_from(wait)?;
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(why) => return Err(why.into()),
    }
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// A probe in flight.
struct ProbeInFlight<'a> {
    index: usize,
    stream: TcpStream,
    /// Bytes still to send.
    unsent: &'a [u8],
    mode: WriteMode,
    after_write: AfterWrite,
    /// True if it has ended its own direction, if it does.
    ended: bool,
    /// True if a write was refused. The next read then no longer reports the error.
    write_failed: bool,
    answer: Vec<u8>,
    received_len: usize,
    started_at: Instant,
    next_write_at: Instant,
}

impl<'a> ProbeInFlight<'a> {
    fn start(addr: SocketAddr, index: usize, probe: &ProbePlan<'a>) -> Result<Self> {
        let began = Instant::now();
        let stream = connect_directly(addr)?;
        stream.set_nonblocking(true)?;
        let mut running = Self {
            index,
            stream,
            unsent: probe.bytes,
            mode: probe.mode,
            after_write: probe.after_write,
            ended: false,
            write_failed: false,
            answer: Vec::new(),
            received_len: 0,
            started_at: began,
            next_write_at: began,
        };
        running.send_due(began);
        Ok(running)
    }

    /// Sends the bytes that are due, and performs `after_write` when all bytes are sent.
    fn send_due(&mut self, now: Instant) {
        while !self.unsent.is_empty() && now >= self.next_write_at {
            let part = match self.mode {
                WriteMode::OneWrite => self.unsent,
                WriteMode::ByteByByte => &self.unsent[..1],
            };
            match self.stream.write(part) {
                Ok(n) => self.unsent = &self.unsent[n..],
                Err(why) if why.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.write_failed = true;
                    return;
                }
            }
            if self.mode == WriteMode::ByteByByte {
                self.next_write_at = now + BYTE_INTERVAL;
            }
        }
        if self.unsent.is_empty() && !self.ended {
            self.ended = true;
            if self.after_write == AfterWrite::HalfClose {
                let _ = self.stream.shutdown(Shutdown::Write);
            }
        }
    }

    /// Returns true if it has sent all bytes and does not wait for a reaction.
    fn is_finished(&self) -> bool {
        self.ended && self.after_write == AfterWrite::Close
    }

    /// Returns the outcome, once there is one.
    fn advance(&mut self, now: Instant, ready: bool, timeout: Duration) -> Option<ProbeOutcome> {
        // Received data comes first: what is sent after an end may be answered by a reset.
        if ready {
            let mut buf = [0; 4096];
            match self.stream.read(&mut buf) {
                Ok(0) => return Some(self.take_outcome(Reaction::End)),
                Ok(n) => {
                    let room = KEPT_ANSWER_LEN.saturating_sub(self.answer.len()).min(n);
                    self.answer.extend_from_slice(&buf[..room]);
                    self.received_len += n;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.write_failed = true,
            }
        }
        if !self.write_failed {
            self.send_due(now);
        }
        if self.write_failed {
            return Some(self.take_outcome(Reaction::Reset));
        }
        if self.is_finished() {
            return Some(self.take_outcome(Reaction::Silence));
        }
        (now.duration_since(self.started_at) >= timeout)
            .then(|| self.take_outcome(Reaction::Silence))
    }

    fn take_outcome(&mut self, end: Reaction) -> ProbeOutcome {
        ProbeOutcome {
            reaction: match self.received_len {
                // A probe that closed the stream would not have seen it.
                0 if self.after_write == AfterWrite::Close => Reaction::Silence,
                0 => end,
                n => Reaction::Answer(n),
            },
            answer: std::mem::take(&mut self.answer),
            elapsed: self.started_at.elapsed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::OriginServer;

    #[test]
    fn each_probe_gets_its_own_outcome() {
        let origin = OriginServer::start().unwrap();
        let lines: Vec<String> = (0..60).map(|n| format!("LATE {n} 1\n")).collect();
        let mut probes = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            probes.push(ProbePlan {
                bytes: line.as_bytes(),
                mode: [WriteMode::OneWrite, WriteMode::ByteByByte][n % 2],
                after_write: [AfterWrite::HalfClose, AfterWrite::Hold, AfterWrite::Close][n % 3],
            });
        }
        probes.extend([&b"RESET\n"[..], b"nothing\n"].map(|bytes| ProbePlan {
            bytes,
            mode: WriteMode::OneWrite,
            after_write: AfterWrite::Hold,
        }));
        let short = Duration::from_millis(300);
        let seen = run_probes(origin.addr(), &probes, 25, short, 3).unwrap();
        for (n, outcome) in seen.iter().enumerate() {
            // The origin reports how much it received, then sends as much as the line requested.
            let wanted = match n {
                60 => Reaction::Reset,
                61 => Reaction::End,
                n if n % 3 == 0 => Reaction::Answer(19 + n),
                _ => Reaction::Silence,
            };
            assert_eq!(outcome.reaction, wanted, "{n}");
            let held = n < 60 && n % 3 == 1;
            assert_eq!(outcome.elapsed >= short, held, "{n}: {:?}", outcome.elapsed);
            assert_eq!(
                outcome.answer.starts_with(b"0 "),
                n < 60 && n % 3 == 0,
                "{n}"
            );
        }
    }

    #[test]
    fn the_order_is_drawn() {
        let (one, other) = (shuffle_indices(500, 1), shuffle_indices(500, 2));
        assert_ne!(one, other);
        let mut sorted = one;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..500));
    }
}
