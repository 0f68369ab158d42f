//! Keepalive requests and round-trip times.

use std::collections::VecDeque;
use std::time::Duration;

use adit_ssh_proto::connection::{ChannelCallError, GlobalRequest};
use adit_wire::Time;
use tokio::sync::oneshot;

use super::{Driver, PendingGlobal};
use crate::Keepalive;
use crate::error::SessionEnd;

/// Maximum number of unanswered requests; no more are sent beyond it.
const MAX_OUTSTANDING: usize = 16;
/// Number of requests at the start of a session, one after the other. The first answer is late if the
/// server is still setting up the user's session, and windows grow by the round-trip time.
const INITIAL_PINGS: u32 = 3;

/// The times of the peer's traffic and the outstanding keepalive requests.
pub(super) struct Liveness {
    keepalive: Option<Keepalive>,
    inactivity: Option<Duration>,
    last_heard: Time,
    /// The time of the last traffic other than keepalives.
    last_traffic: Time,
    /// True if there was such traffic since the last check.
    pub(super) has_traffic: bool,
    /// Number of keepalive requests since the peer was last heard.
    missed: u32,
    /// Outstanding requests, in order.
    outstanding: VecDeque<OutstandingPing>,
    /// Handles that wait for the answer to the next request.
    waiters: Vec<oneshot::Sender<Result<Duration, SessionEnd>>>,
    number: u64,
    rtt: Option<Duration>,
    /// Number of initial requests that are still to be sent.
    initial_left: u32,
}

struct OutstandingPing {
    at: Time,
    who: Vec<oneshot::Sender<Result<Duration, SessionEnd>>>,
}

impl Liveness {
    pub(super) const fn new(
        keepalive: Option<Keepalive>,
        inactivity: Option<Duration>,
        now: Time,
    ) -> Self {
        Self {
            keepalive,
            inactivity,
            last_heard: now,
            last_traffic: now,
            has_traffic: false,
            missed: 0,
            outstanding: VecDeque::new(),
            waiters: Vec::new(),
            number: 0,
            rtt: None,
            initial_left: INITIAL_PINGS,
        }
    }

    pub(super) const fn record_heard(&mut self, now: Time) {
        (self.last_heard, self.missed) = (now, 0);
    }

    /// Adds a handle that wants a round-trip time.
    pub(super) fn add_waiter(&mut self, who: oneshot::Sender<Result<Duration, SessionEnd>>) {
        self.waiters.push(who);
    }

    /// Returns the time at which the next keepalive is due, or the peer is declared dead.
    fn next_keepalive(&self) -> Option<Time> {
        let Keepalive { interval, .. } = self.keepalive?;
        Some(self.last_heard + interval.saturating_mul(self.missed.saturating_add(1)))
    }

    /// Returns the time at which the session is idle for too long.
    fn idle_deadline(&mut self, now: Time) -> Option<Time> {
        if core::mem::take(&mut self.has_traffic) {
            self.last_traffic = now;
        }
        self.inactivity.map(|limit| self.last_traffic + limit)
    }

    /// Returns the time of the next action.
    pub(super) fn next_deadline(&mut self, now: Time) -> Option<Time> {
        let both = [self.next_keepalive(), self.idle_deadline(now)];
        both.into_iter().flatten().min()
    }

    pub(super) fn fail_waiters(&mut self, why: &SessionEnd) {
        let waiting = self.outstanding.drain(..).flat_map(|question| question.who);
        for who in waiting.chain(self.waiters.drain(..)) {
            let _ = who.send(Err(why.clone()));
        }
    }

    /// Records the answer to the oldest request; returns the shortest round-trip time so far.
    fn record_answer(&mut self, now: Time) -> Option<Duration> {
        let question = self.outstanding.pop_front()?;
        let took = now.duration_since(question.at);
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
    pub(super) fn send_keepalive(&mut self, now: Time) -> Result<(), SessionEnd> {
        let alive = &mut self.alive;
        if alive.idle_deadline(now).is_some_and(|end| end <= now) {
            return Err(SessionEnd::Idle(alive.inactivity.unwrap_or_default()));
        }
        let due = alive.next_keepalive().is_some_and(|due| due <= now);
        if due {
            let missed = alive
                .keepalive
                .map_or(u32::MAX, |keepalive| keepalive.max_missed);
            if alive.missed >= missed {
                return Err(SessionEnd::PeerSilent(now.duration_since(alive.last_heard)));
            }
            alive.missed += 1;
        }
        let owed = alive.initial_left > 0 && alive.outstanding.is_empty();
        let ask = due || owed || !alive.waiters.is_empty();
        if !ask || alive.outstanding.len() >= MAX_OUTSTANDING {
            return Ok(());
        }
        alive.initial_left = alive.initial_left.saturating_sub(1);
        alive.number += 1;
        let number = alive.number.to_be_bytes();
        if !self.line.transport.send_ping(&number)? {
            match self
                .connection
                .send_global_request(&GlobalRequest::KeepAlive)
            {
                Ok(Some(id)) => drop(self.globals.insert(id, PendingGlobal::Keepalive)),
                Ok(None) => {}
                // Enough other requests are outstanding, and their answers show that the peer is alive.
                Err(ChannelCallError::Full | ChannelCallError::TooMany | _) => return Ok(()),
            }
        }
        let who = core::mem::take(&mut self.alive.waiters);
        self.alive
            .outstanding
            .push_back(OutstandingPing { at: now, who });
        Ok(())
    }

    /// Records the peer's answer to the oldest request.
    pub(super) fn handle_keepalive_answer(&mut self, now: Time) {
        if let Some(rtt) = self.alive.record_answer(now) {
            self.connection.set_rtt(rtt);
            self.mail.set_rtt(rtt);
        }
    }
}
