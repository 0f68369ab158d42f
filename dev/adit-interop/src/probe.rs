//! Many concurrent probes, and a test whether their ends can be told apart.
//!
//! [`volley`] starts probes from one thread in a random order: anything that slows the machine for
//! a moment then affects all causes alike, and only the server can make a difference between them.
//! [`told_apart`] looks for such a difference.

mod apart;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::hostile::{Ending, Manner, Reaction};
use crate::pattern::Pattern;
use crate::traffic::dial;

pub use apart::{Odd, Sample, likeness, told_apart};

/// Time between the bytes of a slow probe.
const PAUSE: Duration = Duration::from_millis(1);
/// Probes that start in one batch, before the others are polled again.
const BURST: usize = 8;
/// Number of bytes kept of an answer.
const KEPT: usize = 64;

/// One probe.
#[derive(Debug, Clone, Copy)]
pub struct Shot<'a> {
    /// Bytes to send.
    pub bytes: &'a [u8],
    /// The way in which they are sent.
    pub manner: Manner,
    /// The action that follows.
    pub ending: Ending,
}

/// The outcome of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The reaction it saw; an answer counts more than the end that follows it.
    pub reaction: Reaction,
    /// The first bytes of an answer.
    pub said: Vec<u8>,
    /// Time from before it connected until the end, or for as long as it waited.
    pub after: Duration,
}

/// Runs all `shots`, at most `crowd` of them at the same time, and watches each for `patience`.
/// Returns their outcomes in the order of `shots`; `seed` determines the order in which they start.
pub fn volley(
    addr: SocketAddr,
    shots: &[Shot<'_>],
    crowd: usize,
    patience: Duration,
    seed: u64,
) -> Result<Vec<Outcome>> {
    let mut waiting = shuffled(shots.len(), seed);
    let mut done: Vec<Option<Outcome>> = shots.iter().map(|_| None).collect();
    let mut flying: Vec<Flight<'_>> = Vec::new();
    while !(waiting.is_empty() && flying.is_empty()) {
        for _ in 0..BURST.min(crowd.saturating_sub(flying.len())) {
            let Some(place) = waiting.pop() else { break };
            let mut flight = Flight::start(addr, place, &shots[place])?;
            if flight.is_over() {
                done[place] = Some(flight.outcome(Reaction::Silence));
            } else {
                flying.push(flight);
            }
        }
        let busy = !waiting.is_empty() && flying.len() < crowd;
        let slow = flying.iter().any(|flight| !flight.left.is_empty());
        let wait = match (busy, slow) {
            (true, _) => Duration::ZERO,
            (_, true) => PAUSE,
            _ => Duration::from_millis(50),
        };
        let ready = readable(&flying, wait)?;
        let now = Instant::now();
        let mut flown = Vec::with_capacity(flying.len());
        for (mut flight, ready) in flying.into_iter().zip(ready) {
            match flight.go_on(now, ready, patience) {
                Some(outcome) => done[flight.place] = Some(outcome),
                None => flown.push(flight),
            }
        }
        flying = flown;
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
fn shuffled(len: usize, seed: u64) -> Vec<usize> {
    let mut chance = Pattern::new(seed);
    let mut keyed: Vec<_> = (0..len).map(|n| (chance.take(8), n)).collect();
    keyed.sort();
    keyed.into_iter().map(|(_, n)| n).collect()
}

/// Returns which of them are readable, once one is or the time has elapsed.
fn readable(flying: &[Flight<'_>], wait: Duration) -> Result<Vec<bool>> {
    let mut fds: Vec<_> = flying
        .iter()
        .map(|flight| PollFd::new(&flight.stream, PollFlags::IN))
        .collect();
    let wait = Timespec::try_from(wait)?;
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(why) => return Err(why.into()),
    }
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// A probe in flight.
struct Flight<'a> {
    place: usize,
    stream: TcpStream,
    /// Bytes still to send.
    left: &'a [u8],
    manner: Manner,
    ending: Ending,
    /// True if it has ended its own direction, if it does.
    ended: bool,
    /// True if a write was refused. The next read then no longer reports the error.
    reset: bool,
    said: Vec<u8>,
    heard: usize,
    began: Instant,
    next: Instant,
}

impl<'a> Flight<'a> {
    fn start(addr: SocketAddr, place: usize, shot: &Shot<'a>) -> Result<Self> {
        let began = Instant::now();
        let stream = dial(addr)?;
        stream.set_nonblocking(true)?;
        let mut flight = Self {
            place,
            stream,
            left: shot.bytes,
            manner: shot.manner,
            ending: shot.ending,
            ended: false,
            reset: false,
            said: Vec::new(),
            heard: 0,
            began,
            next: began,
        };
        flight.say(began);
        Ok(flight)
    }

    /// Sends what is due, and performs the ending when all bytes are sent.
    fn say(&mut self, now: Instant) {
        while !self.left.is_empty() && now >= self.next {
            let part = match self.manner {
                Manner::AtOnce => self.left,
                Manner::ByteByByte => &self.left[..1],
            };
            match self.stream.write(part) {
                Ok(n) => self.left = &self.left[n..],
                Err(why) if why.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.reset = true;
                    return;
                }
            }
            if self.manner == Manner::ByteByByte {
                self.next = now + PAUSE;
            }
        }
        if self.left.is_empty() && !self.ended {
            self.ended = true;
            if self.ending == Ending::HalfClose {
                let _ = self.stream.shutdown(Shutdown::Write);
            }
        }
    }

    /// Returns true if it has sent all bytes and does not wait for a reaction.
    fn is_over(&self) -> bool {
        self.ended && self.ending == Ending::Close
    }

    /// Returns the outcome, once there is one.
    fn go_on(&mut self, now: Instant, ready: bool, patience: Duration) -> Option<Outcome> {
        // Received data comes first: what is sent after an end may be answered by a reset.
        if ready {
            let mut buf = [0; 4096];
            match self.stream.read(&mut buf) {
                Ok(0) => return Some(self.outcome(Reaction::End)),
                Ok(n) => {
                    let room = KEPT.saturating_sub(self.said.len()).min(n);
                    self.said.extend_from_slice(&buf[..room]);
                    self.heard += n;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.reset = true,
            }
        }
        if !self.reset {
            self.say(now);
        }
        if self.reset {
            return Some(self.outcome(Reaction::Reset));
        }
        if self.is_over() {
            return Some(self.outcome(Reaction::Silence));
        }
        (now.duration_since(self.began) >= patience).then(|| self.outcome(Reaction::Silence))
    }

    fn outcome(&mut self, end: Reaction) -> Outcome {
        Outcome {
            reaction: match self.heard {
                // A probe that closed the stream would not have seen it.
                0 if self.ending == Ending::Close => Reaction::Silence,
                0 => end,
                n => Reaction::Answer(n),
            },
            said: std::mem::take(&mut self.said),
            after: self.began.elapsed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;

    #[test]
    fn each_probe_gets_its_own_outcome() {
        let origin = Origin::start().unwrap();
        let lines: Vec<String> = (0..60).map(|n| format!("LATE {n} 1\n")).collect();
        let mut shots = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            shots.push(Shot {
                bytes: line.as_bytes(),
                manner: [Manner::AtOnce, Manner::ByteByByte][n % 2],
                ending: [Ending::HalfClose, Ending::Hold, Ending::Close][n % 3],
            });
        }
        shots.extend([&b"RESET\n"[..], b"nothing\n"].map(|bytes| Shot {
            bytes,
            manner: Manner::AtOnce,
            ending: Ending::Hold,
        }));
        let short = Duration::from_millis(300);
        let seen = volley(origin.addr(), &shots, 25, short, 3).unwrap();
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
            assert_eq!(outcome.after >= short, held, "{n}: {:?}", outcome.after);
            assert_eq!(outcome.said.starts_with(b"0 "), n < 60 && n % 3 == 0, "{n}");
        }
    }

    #[test]
    fn the_order_is_drawn() {
        let (one, other) = (shuffled(500, 1), shuffled(500, 2));
        assert_ne!(one, other);
        let mut sorted = one;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..500));
    }
}
