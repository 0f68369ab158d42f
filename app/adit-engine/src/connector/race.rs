//! The race of a group's members for the answer to one request.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use adit_stream::{BoxStream, Stream, fill_to};
use adit_wire::{Target, subslice, subslice_mut};
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, timeout};

use super::group_member::{GroupMember, OpenCount, OpenedStream};
use super::pending_opens::{CONFIRM_WITHIN, PendingOpens};
use super::raced_stream::{SettledStream, poll_write_kept};
use super::replay_safety::is_repeatable;
use super::{HopWatch, member_probe};
use crate::loop_detection;

/// Maximum number of the client's bytes that are kept for another member.
const MAX_KEPT: usize = 16 << 10;
/// Minimum time before another member is tried for a client that has sent nothing. It may only have connected
/// in advance.
const MIN_UNASKED_WAIT: Duration = Duration::from_secs(1);
/// Time without an answer of any member after which they are looked at.
const REPORT_SILENCE_AFTER: Duration = Duration::from_secs(6);
/// The same if the client has closed the connection.
const REPORT_ABANDONED_AFTER: Duration = Duration::from_secs(2);

/// Attempts through several members.
pub(super) struct Race {
    target: Target,
    /// Number of times that the request has come back to this process.
    rounds: u8,
    /// The attempts that may still answer, in the order of their start.
    attempts: Vec<Attempt>,
    opening: PendingOpens<OpenedStream>,
    /// Members that were not tried.
    waiting: VecDeque<Arc<GroupMember>>,
    /// Attempts that ended without an answer. If no other member has one either, the target may be the cause.
    failed: Vec<FailedAttempt>,
    /// The usual time of the member that was started last.
    usual: Duration,
    /// The kept bytes, and behind them the slot.
    bytes: Vec<u8>,
    kept: usize,
    /// True once the bytes may be sent.
    is_flushed: bool,
    /// True once the client has ended its direction.
    is_finished: bool,
    /// True if the only attempt takes further bytes directly.
    is_exclusive: bool,
    /// Fires when the next member is due, and then when the silence has lasted for long.
    timer: Option<Pin<Box<Sleep>>>,
    /// True if the timer was set for a client that had sent nothing.
    was_unasked: bool,
    is_reported: bool,
    /// The way in which the last attempt ended.
    end: Option<io::Error>,
}

/// One attempt.
struct Attempt {
    member: Arc<GroupMember>,
    io: BoxStream,
    watch: Option<HopWatch>,
    count: OpenCount,
    since: Instant,
    /// Time that it took to open.
    took: Duration,
    written: usize,
    /// Time at which the member had the bytes, and their number.
    asked: Option<(Instant, usize)>,
    is_finished: bool,
    write_error: Option<io::Error>,
}

/// An attempt that ended without an answer.
struct FailedAttempt {
    member: Arc<GroupMember>,
    since: Instant,
    cause: &'static str,
    what: String,
}

/// The end of a race.
pub(super) enum RaceEvent {
    /// A member has answered.
    Won(SettledStream),
    /// No member has, and none is left.
    Ended(io::Result<()>),
}

impl Attempt {
    fn new(opened: OpenedStream, watch: Option<HopWatch>) -> Self {
        Self {
            count: opened.member.count_open(),
            member: opened.member,
            io: opened.stream.io,
            watch,
            since: opened.since,
            took: opened.took,
            written: 0,
            asked: None,
            is_finished: false,
            write_error: None,
        }
    }

    /// Returns true if the server has proved that it serves.
    fn is_proved(&self) -> bool {
        let watch = self.watch.as_ref();
        watch.is_none_or(|watch| watch.progress.is_authenticated())
    }

    /// Returns true if the server has bytes of the client, so that it owes an answer.
    fn is_asked(&self) -> bool {
        self.asked.is_some_and(|(_, bytes)| bytes > 0)
    }

    fn record_answer(&self) {
        let took = self
            .asked
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(at, _)| self.took + at.elapsed());
        match (&self.watch, took) {
            (Some(watch), Some(took)) => self.member.record_proof(watch, took),
            (Some(watch), None) => {
                watch.health.record_proof(watch.progress.clock_skew());
                self.member.record_success(None);
            }
            (None, took) => self.member.record_success(took),
        }
    }

    /// Sends what is kept, as far as the stream takes it.
    fn poll_send(&mut self, cx: &mut Context<'_>, kept: &[u8], finishes: bool) {
        if self.write_error.is_some() {
            return;
        }
        let sent = poll_write_kept(&mut *self.io, cx, kept, &mut self.written);
        let sent = match sent {
            Poll::Ready(Ok(())) if finishes && !self.is_finished => {
                self.io.poll_finish(cx).map_ok(|()| self.is_finished = true)
            }
            Poll::Ready(Ok(())) if !finishes => self.io.poll_flush(cx),
            other => other,
        };
        match sent {
            Poll::Ready(Ok(())) => {
                if self
                    .asked
                    .is_none_or(|(_, bytes)| bytes == 0 && !kept.is_empty())
                {
                    self.asked = Some((Instant::now(), kept.len()));
                }
            }
            Poll::Ready(Err(why)) => self.write_error = Some(why),
            Poll::Pending => {}
        }
    }

    /// Waits for the answer of an attempt that another has overtaken.
    async fn confirm(mut self) {
        let answer = timeout(CONFIRM_WITHIN, fill_to(&mut *self.io, 1)).await;
        if matches!(answer, Ok(Ok(1..))) || self.is_proved() {
            self.record_answer();
            return;
        }
        let waited = self.asked.map_or(CONFIRM_WITHIN, |(at, _)| at.elapsed());
        let what = match answer {
            Ok(Ok(_)) => "has closed the connection without an answer".to_owned(),
            Ok(Err(why)) => format!("has failed without an answer: {why}"),
            Err(_) => format!(
                "has not answered in {:.1} s, while another member has",
                waited.as_secs_f32()
            ),
        };
        self.member.record_no_answer(self.since, "silent", &what);
    }
}

impl Race {
    pub(super) fn new(
        opened: OpenedStream,
        watch: HopWatch,
        waiting: VecDeque<Arc<GroupMember>>,
        target: Target,
        first: &[u8],
    ) -> Self {
        Self {
            usual: opened.member.usual_time(),
            failed: Vec::new(),
            target,
            rounds: loop_detection::current_rounds(),
            attempts: vec![Attempt::new(opened, Some(watch))],
            opening: PendingOpens::default(),
            waiting,
            bytes: first.to_vec(),
            kept: first.len(),
            is_flushed: false,
            is_finished: false,
            is_exclusive: false,
            timer: None,
            was_unasked: false,
            is_reported: false,
            end: None,
        }
    }

    fn kept(&self) -> &[u8] {
        subslice(&self.bytes, ..self.kept)
    }

    /// Returns true if another member may receive the bytes.
    fn has_next(&self) -> bool {
        !self.waiting.is_empty() && !self.is_exclusive && is_repeatable(self.kept())
    }

    fn start_next(&mut self) {
        if let Some(member) = self.waiting.pop_front() {
            self.usual = member.usual_time();
            let opening = member.clone().open_stream(self.target.clone());
            let opening = loop_detection::with_rounds(self.rounds, opening);
            self.opening.add(member, Box::pin(opening));
        }
    }

    /// Returns the next time at which something is due if no member answers.
    fn wait_time(&self) -> Duration {
        if !self.has_next() {
            return REPORT_SILENCE_AFTER;
        }
        match self.kept {
            0 => self.usual.max(MIN_UNASKED_WAIT),
            _ => self.usual,
        }
    }

    /// Does everything but reading.
    fn poll_work(&mut self, cx: &mut Context<'_>) {
        self.poll_attempts(cx);
        while self.poll_timer(cx) {
            // A new attempt has to be polled before it wakes this task.
            self.poll_attempts(cx);
        }
    }

    /// Opens attempts, and sends what is kept.
    fn poll_attempts(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(opened) = match self.opening.is_empty() {
            true => Poll::Pending,
            false => self.opening.poll_any(cx),
        } {
            match opened {
                Ok(mut opened) => {
                    let watch = opened.stream.watch.take();
                    self.attempts.push(Attempt::new(opened, watch));
                    self.is_flushed = true;
                    self.timer = None;
                }
                Err(why) => {
                    let cause = why.source_error.kind();
                    self.end = Some(io::Error::new(cause, why));
                }
            }
        }
        if self.is_flushed && !self.is_exclusive {
            let kept = self.bytes.get(..self.kept).unwrap_or_default();
            for attempt in &mut self.attempts {
                attempt.poll_send(cx, kept, self.is_finished);
            }
        }
    }

    /// Starts the next attempt if it is due, and returns true if it has.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let is_asked = self.attempts.iter().any(|attempt| attempt.asked.is_some());
        if !is_asked && self.opening.is_empty() {
            return false;
        }
        if self.was_unasked && self.kept > 0 {
            // The answer is due from now on.
            self.timer = None;
        }
        if self.timer.is_none() {
            self.was_unasked = self.kept == 0;
            self.timer = Some(Box::pin(sleep(self.wait_time())));
        }
        while let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            if self.has_next() {
                let alive = self.attempts.last().is_some_and(|attempt| {
                    let health = attempt.member.health();
                    health.is_some_and(|health| health.has_served_since(attempt.since))
                });
                // If it serves others, the target is slow.
                if !alive {
                    self.opening.mark_late();
                    self.start_next();
                    self.timer = Some(Box::pin(sleep(self.wait_time())));
                    return true;
                }
            } else if !std::mem::replace(&mut self.is_reported, true) {
                self.report_silence();
            } else {
                // It fires no more.
                let never = Duration::from_secs(1 << 30);
                self.timer = Some(Box::pin(sleep(never)));
                continue;
            }
            self.timer = Some(Box::pin(sleep(self.wait_time())));
        }
        false
    }

    /// Looks at the members that have not answered; their target may be the cause.
    fn report_silence(&self) {
        for attempt in &self.attempts {
            if let Some((at, 1..)) = attempt.asked
                && !attempt.is_proved()
            {
                let what = format!("has not answered in {} s", at.elapsed().as_secs());
                member_probe::verify(&attempt.member, attempt.since, "silent", what);
            }
        }
    }

    /// Waits for the answer of any member.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<RaceEvent> {
        loop {
            self.poll_work(cx);
            let mut at = 0;
            while let Some(attempt) = self.attempts.get_mut(at) {
                let end = match attempt.io.poll_fill(cx, 1) {
                    Poll::Ready(Ok(1..)) => return Poll::Ready(RaceEvent::Won(self.settle(at))),
                    Poll::Ready(Ok(0)) => None,
                    Poll::Ready(Err(why)) => Some(why),
                    Poll::Pending => match attempt.write_error.take() {
                        Some(why) => Some(why),
                        None => {
                            at += 1;
                            continue;
                        }
                    },
                };
                if self.attempts.get(at).is_some_and(Attempt::is_proved) {
                    // The answer is that there are no bytes.
                    let winner = self.settle(at);
                    return Poll::Ready(match end {
                        None => RaceEvent::Won(winner),
                        Some(why) => RaceEvent::Ended(Err(why)),
                    });
                }
                self.drop_failed(at, end);
            }
            if !self.attempts.is_empty() || !self.opening.is_empty() {
                return Poll::Pending;
            }
            if !self.has_next() {
                self.verify_failed();
                return Poll::Ready(RaceEvent::Ended(self.end.take().map_or(Ok(()), Err)));
            }
            self.start_next();
        }
    }

    /// Looks at the members that have failed, of which none may be at fault.
    fn verify_failed(&mut self) {
        for failed in self.failed.drain(..) {
            member_probe::verify(&failed.member, failed.since, failed.cause, failed.what);
        }
    }

    /// Removes an attempt that ended without an answer.
    fn drop_failed(&mut self, at: usize, end: Option<io::Error>) {
        let attempt = self.attempts.remove(at);
        if attempt.is_asked() && !attempt.is_proved() {
            let (cause, what) = match &end {
                None => (
                    "closed",
                    "has closed the connection without an answer".to_owned(),
                ),
                Some(why) => (
                    crate::FailureCause::from_io_error(why).label(),
                    format!("has failed without an answer: {why}"),
                ),
            };
            self.failed.push(FailedAttempt {
                member: attempt.member,
                since: attempt.since,
                cause,
                what,
            });
        }
        self.end = end;
    }

    /// Ends the race with this attempt as the winner.
    fn settle(&mut self, at: usize) -> SettledStream {
        let winner = self.attempts.remove(at);
        winner.record_answer();
        winner.member.group.record_target(&self.target);
        for failed in self.failed.drain(..) {
            let FailedAttempt { member, since, .. } = failed;
            member.record_no_answer(since, failed.cause, &failed.what);
        }
        for late in self.attempts.drain(..) {
            let served =
                |health: &super::member_health::MemberHealth| health.has_served_since(late.since);
            if late.is_asked()
                && let Some(health) = late.member.health()
                && !served(health)
                && let Ok(runtime) = Handle::try_current()
            {
                health.record_late();
                runtime.spawn(late.confirm());
            }
        }
        drop(std::mem::take(&mut self.opening));
        self.waiting.clear();
        let unsent = subslice(&self.bytes, winner.written.min(self.kept)..self.kept);
        let finishes = self.is_finished && !winner.is_finished && !self.is_exclusive;
        SettledStream::new(winner.io, winner.count, unsent, finishes)
    }

    /// Reserves space for further bytes: in the kept ones, or in the stream if there would be too many.
    pub(super) fn poll_slot(
        &mut self,
        cx: &mut Context<'_>,
        min: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.is_exclusive {
            if self.kept + min.max(1) <= MAX_KEPT {
                self.bytes.resize(MAX_KEPT, 0);
                return Poll::Ready(Ok(MAX_KEPT - self.kept));
            }
            self.is_flushed = true;
            self.poll_work(cx);
            if self.attempts.is_empty() {
                return match self.opening.is_empty() && !self.has_next() {
                    true => Poll::Ready(Ok(0)),
                    false => Poll::Pending,
                };
            }
            self.make_exclusive();
        }
        if self.attempts.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_exclusive(cx, |io, cx| io.poll_slot(cx, min))
    }

    /// Sends what is kept to the exclusive attempt, and then calls `next` with it.
    fn poll_exclusive<T: Default>(
        &mut self,
        cx: &mut Context<'_>,
        next: impl FnOnce(&mut dyn Stream, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Some(attempt) = self.attempts.first_mut() else {
            return Poll::Ready(Ok(T::default()));
        };
        let kept = self.bytes.get(..self.kept).unwrap_or_default();
        if attempt.asked.is_none_or(|(_, bytes)| bytes == 0) {
            attempt.asked = Some((Instant::now(), kept.len()));
        }
        let sent = ready!(poll_write_kept(
            &mut *attempt.io,
            cx,
            kept,
            &mut attempt.written
        ));
        let result = match sent {
            Ok(()) => ready!(next(&mut *attempt.io, cx)),
            Err(why) => Err(why),
        };
        Poll::Ready(self.note_failure(result))
    }

    /// Sends all further bytes to the first attempt alone.
    fn make_exclusive(&mut self) {
        self.attempts.truncate(1);
        drop(std::mem::take(&mut self.opening));
        self.waiting.clear();
        self.is_exclusive = true;
        self.timer = None;
    }

    /// Records the failure of the exclusive attempt.
    fn note_failure<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(why) = &result
            && !self.attempts.is_empty()
        {
            let again = io::Error::new(why.kind(), why.to_string());
            self.drop_failed(0, Some(again));
            self.verify_failed();
        }
        result
    }

    pub(super) fn slot(&mut self) -> &mut [u8] {
        if self.is_exclusive {
            return match self.attempts.first_mut() {
                Some(attempt) => attempt.io.slot(),
                None => Default::default(),
            };
        }
        let kept = self.kept.min(self.bytes.len());
        subslice_mut(&mut self.bytes, kept..)
    }

    pub(super) fn commit(&mut self, n: usize) -> io::Result<()> {
        if self.is_exclusive {
            let committed = match self.attempts.first_mut() {
                Some(attempt) => attempt.io.commit(n),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            };
            return self.note_failure(committed);
        }
        self.kept = (self.kept + n).min(self.bytes.len());
        Ok(())
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_flushed = true;
        self.poll_work(cx);
        match self.is_exclusive {
            true => self.poll_exclusive(cx, |io, cx| io.poll_flush(cx)),
            false => Poll::Ready(Ok(())),
        }
    }

    pub(super) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_finished = true;
        self.is_flushed = true;
        self.poll_work(cx);
        match self.is_exclusive {
            true => self.poll_exclusive(cx, |io, cx| io.poll_finish(cx)),
            false => Poll::Ready(Ok(())),
        }
    }

    pub(super) fn abort(&mut self) {
        for attempt in &mut self.attempts {
            attempt.io.abort();
        }
    }

    pub(super) fn owes_head(&self) -> bool {
        let first = self.attempts.first();
        self.kept == 0 && first.is_some_and(|attempt| attempt.io.owes_head())
    }

    pub(super) fn exclusive(&self) -> Option<&dyn Stream> {
        let first = self.attempts.first().filter(|_| self.is_exclusive);
        first.map(|attempt| &*attempt.io)
    }

    pub(super) fn exclusive_mut(&mut self) -> Option<&mut dyn Stream> {
        let is_exclusive = self.is_exclusive;
        let first = self.attempts.first_mut().filter(|_| is_exclusive);
        first.map(|attempt| &mut *attempt.io as &mut dyn Stream)
    }
}

impl Drop for Race {
    /// The client has given up.
    fn drop(&mut self) {
        let waited = self.attempts.iter().filter_map(|attempt| attempt.asked);
        let waited = waited.map(|(at, _)| at.elapsed()).max();
        if !self.is_reported && waited.is_some_and(|waited| waited >= REPORT_ABANDONED_AFTER) {
            self.report_silence();
        }
        self.verify_failed();
    }
}
