//! Keepalive requests and round-trip times.

use std::collections::VecDeque;
use std::time::Duration;

use adit_ssh_proto::connection::{CallError, GlobalRequest};
use adit_wire::Time;
use tokio::sync::oneshot;

use super::{Driver, Global};
use crate::Keepalive;
use crate::error::End;

/// Maximum number of unanswered requests; no more are sent beyond it.
const MAX_ASKED: usize = 16;
/// Number of requests at the start of a session, one after the other. The first answer is late if the
/// server is still setting up the user's session, and windows grow by the round-trip time.
const FIRST: u32 = 3;

/// The times of the peer's traffic and the outstanding keepalive requests.
pub(super) struct Alive {
    keepalive: Option<Keepalive>,
    inactivity: Option<Duration>,
    heard: Time,
    /// The time of the last traffic other than keepalives.
    moved: Time,
    /// True if there was such traffic since the last check.
    pub(super) moves: bool,
    /// Number of keepalive requests since the peer was last heard.
    silent: u32,
    /// Outstanding requests, in order.
    asked: VecDeque<Question>,
    /// Handles that wait for the answer to the next request.
    wanted: Vec<oneshot::Sender<Result<Duration, End>>>,
    number: u64,
    rtt: Option<Duration>,
    /// Number of initial requests that are still to be sent.
    first: u32,
}

struct Question {
    at: Time,
    who: Vec<oneshot::Sender<Result<Duration, End>>>,
}

impl Alive {
    pub(super) const fn new(
        keepalive: Option<Keepalive>,
        inactivity: Option<Duration>,
        now: Time,
    ) -> Self {
        Self {
            keepalive,
            inactivity,
            heard: now,
            moved: now,
            moves: false,
            silent: 0,
            asked: VecDeque::new(),
            wanted: Vec::new(),
            number: 0,
            rtt: None,
            first: FIRST,
        }
    }

    pub(super) const fn heard(&mut self, now: Time) {
        (self.heard, self.silent) = (now, 0);
    }

    /// Adds a handle that wants a round-trip time.
    pub(super) fn want(&mut self, who: oneshot::Sender<Result<Duration, End>>) {
        self.wanted.push(who);
    }

    /// Returns the time at which the next keepalive is due, or the peer is declared dead.
    fn asks(&self) -> Option<Time> {
        let Keepalive { interval, .. } = self.keepalive?;
        Some(self.heard + interval.saturating_mul(self.silent.saturating_add(1)))
    }

    /// Returns the time at which the session is idle for too long.
    fn is_over(&mut self, now: Time) -> Option<Time> {
        if core::mem::take(&mut self.moves) {
            self.moved = now;
        }
        self.inactivity.map(|limit| self.moved + limit)
    }

    /// Returns the time of the next action.
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        let both = [self.asks(), self.is_over(now)];
        both.into_iter().flatten().min()
    }

    pub(super) fn end(&mut self, why: &End) {
        let waiting = self.asked.drain(..).flat_map(|question| question.who);
        for who in waiting.chain(self.wanted.drain(..)) {
            let _ = who.send(Err(why.clone()));
        }
    }

    /// Records the answer to the oldest request; returns the shortest round-trip time so far.
    fn answered(&mut self, now: Time) -> Option<Duration> {
        let question = self.asked.pop_front()?;
        let took = now.since(question.at);
        for who in question.who {
            let _ = who.send(Ok(took));
        }
        let least = self.rtt.map_or(took, |least| least.min(took));
        self.rtt = Some(least);
        Some(least)
    }
}

impl Driver {
    /// Sends a keepalive request if one is due, or if a handle wants one.
    pub(super) fn probe(&mut self, now: Time) -> Result<(), End> {
        let alive = &mut self.alive;
        if alive.is_over(now).is_some_and(|end| end <= now) {
            return Err(End::Idle(alive.inactivity.unwrap_or_default()));
        }
        let due = alive.asks().is_some_and(|due| due <= now);
        if due {
            let missed = alive
                .keepalive
                .map_or(u32::MAX, |keepalive| keepalive.missed);
            if alive.silent >= missed {
                return Err(End::Silent(now.since(alive.heard)));
            }
            alive.silent += 1;
        }
        let owed = alive.first > 0 && alive.asked.is_empty();
        let ask = due || owed || !alive.wanted.is_empty();
        if !ask || alive.asked.len() >= MAX_ASKED {
            return Ok(());
        }
        alive.first = alive.first.saturating_sub(1);
        alive.number += 1;
        let number = alive.number.to_be_bytes();
        if !self.line.transport.ping(&number)? {
            match self.connection.global_request(&GlobalRequest::KeepAlive) {
                Ok(Some(id)) => drop(self.globals.insert(id, Global::Alive)),
                Ok(None) => {}
                // Enough other requests are outstanding, and their answers show that the peer is alive.
                Err(CallError::Full | CallError::TooMany | _) => return Ok(()),
            }
        }
        let who = core::mem::take(&mut self.alive.wanted);
        self.alive.asked.push_back(Question { at: now, who });
        Ok(())
    }

    /// Records the peer's answer to the oldest request.
    pub(super) fn answered_probe(&mut self, now: Time) {
        if let Some(rtt) = self.alive.answered(now) {
            self.connection.set_rtt(rtt);
            self.mail.set_rtt(rtt);
        }
    }
}
