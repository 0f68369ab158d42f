//! The relay between two streams.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_net::splice::{self, Pipe};
use adit_wire::{subslice, subslice_mut};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::bulk::{self, Bulk, Rate};
use crate::lane::{self, Load};
use crate::slice::{TimeSlice, give_way};
use crate::{Count, Short, Stream, Tcp};

/// Bytes below which the rate of a direction is not measured.
const LARGE: u64 = 1 << 20;
/// Maximum number of slots filled by one read.
const SCATTER: usize = 8;
/// Maximum number of runs gathered in one write.
const GATHER: usize = 16;
/// Number of consecutive quiet parts after which a deadline has passed. A deadline is met to a
/// quarter of itself, and the clock is not read per chunk.
const PARTS: u32 = 4;

/// Deadlines of a relayed session. Zero means never.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum silence in both directions.
    pub idle: Duration,
    /// Maximum silence once one direction has ended.
    pub half_close_idle: Duration,
}

/// Result of a relayed session.
#[derive(Debug)]
pub struct Outcome {
    /// Payload bytes from near to far.
    pub up: u64,
    /// Payload bytes from far to near.
    pub down: u64,
    /// The reason for the end.
    pub end: End,
    /// True if the target ended its direction first.
    pub far_first: bool,
}

/// Reason for the end of a session.
#[derive(Debug)]
pub enum End {
    /// Both directions have ended.
    Finished,
    /// Both directions were silent for too long.
    Idle,
    /// The client's stream failed.
    Near(io::Error),
    /// The target's stream failed.
    Far(io::Error),
}

/// Relays between `near` (the client) and `far` (the target) until both directions have ended.
///
/// The end of one direction is passed on as a half close; the other direction continues. A failure
/// of one stream becomes a reset of the other, so that a cut transfer never looks complete.
///
/// # Cancel safety
///
/// Not cancel safe: bytes that are in a pipe between two sockets are lost.
pub async fn relay(
    near: &mut dyn Stream,
    far: &mut dyn Stream,
    limits: &Limits,
    meter: &dyn Count,
) -> Outcome {
    let (mut up, mut down) = (Direction::default(), Direction::default());
    let mut quiet = Quiet::default();
    let mut timer = pin!(sleep(part_of(limits, false)));
    let mut first = None;
    let mut load = Load::default();
    let end = poll_fn(|cx| {
        let mut worked = Duration::ZERO;
        let mut a = up.poll(cx, near, far, &mut worked, |n| meter.add_up(n));
        let b = down.poll(cx, far, near, &mut worked, |n| meter.add_down(n));
        if b.is_ready() && a.is_pending() {
            // The end of the answer may also end the direction of the request.
            a = up.poll(cx, near, far, &mut worked, |n| meter.add_up(n));
        }
        if first.is_none() && (a.is_ready() || b.is_ready()) {
            first = Some(b.is_ready());
        }
        match (a, b) {
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(End::Finished),
            (Poll::Ready(Err(Fault::From(e))), _) | (_, Poll::Ready(Err(Fault::To(e)))) => {
                Poll::Ready(End::Near(e))
            }
            (Poll::Ready(Err(Fault::To(e))), _) | (_, Poll::Ready(Err(Fault::From(e)))) => {
                Poll::Ready(End::Far(e))
            }
            (a, b) => {
                let half = a.is_ready() || b.is_ready();
                let wanted = near.lane().or(|| far.lane());
                if let Some(lane) = load.lane_after(worked, wanted) {
                    let there = lane.enter();
                    if let Err(end) = move_sources(&mut up, near, &mut down, far) {
                        return Poll::Ready(end);
                    }
                    let deadline = timer.deadline();
                    timer.set(sleep_until(deadline));
                    drop(there);
                    lane::change(lane);
                    return Poll::Pending;
                }
                quiet.poll(cx, timer.as_mut(), limits, half, up.moved + down.moved)
            }
        }
    })
    .await;
    if !matches!(end, End::Finished) {
        near.abort();
        far.abort();
    }
    Outcome {
        up: up.moved,
        down: down.moved,
        end,
        far_first: first.unwrap_or(false),
    }
}

/// Has the current runtime watch both sockets. Out of line, because a short connection runs through
/// the rest alone, which is already more code than the instruction cache holds.
#[cold]
fn move_sources(
    up: &mut Direction,
    near: &mut dyn Stream,
    down: &mut Direction,
    far: &mut dyn Stream,
) -> Result<(), End> {
    up.move_source(near).map_err(End::Near)?;
    down.move_source(far).map_err(End::Far)
}

/// Returns the time between two looks at the counters.
fn part_of(limits: &Limits, half: bool) -> Duration {
    let limit = if half {
        limits.half_close_idle
    } else {
        limits.idle
    };
    if limit.is_zero() {
        Duration::from_secs(1 << 30)
    } else {
        limit / PARTS
    }
}

/// Detects silence by comparing the counters at intervals.
#[derive(Default)]
struct Quiet {
    moved: u64,
    parts: u32,
    half: bool,
}

impl Quiet {
    /// Checks the counters when the timer fires. Ready with [`End::Idle`] after too much silence.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut Sleep>,
        limits: &Limits,
        half: bool,
        moved: u64,
    ) -> Poll<End> {
        if half != self.half {
            (self.half, self.parts) = (half, 0);
            timer.as_mut().reset(Instant::now() + part_of(limits, half));
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if moved == self.moved {
                self.parts += 1;
                if self.parts >= PARTS {
                    return Poll::Ready(End::Idle);
                }
            } else {
                (self.moved, self.parts) = (moved, 0);
            }
            timer.as_mut().reset(Instant::now() + part_of(limits, half));
        }
    }
}

/// State of one direction of a session.
#[derive(Default)]
struct Direction {
    phase: Phase,
    moved: u64,
    splice: Splice,
    /// Present once the direction has moved enough bytes.
    large: Option<Box<Large>>,
}

/// Rates of a direction that has moved more than `LARGE` bytes.
#[derive(Default)]
struct Large {
    glance: Rate,
    bulk: Bulk,
}

/// State of splicing, and the pipe that holds bytes.
#[derive(Default)]
enum Splice {
    #[default]
    Idle,
    Flowing(Pipe),
    /// The system cannot splice these two sockets.
    Never,
}

/// Phase of a direction.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Copy,
    Finish,
    Done,
}

/// The failed side of a direction.
enum Fault {
    From(io::Error),
    To(io::Error),
}

/// Result of one step of a direction.
enum Moved {
    Bytes(usize),
    /// The source is empty; committed bytes have to be sent.
    SourceEmpty,
    /// The destination is full; the task is woken when it accepts more.
    TargetFull,
    End,
}

impl Direction {
    /// Moves as many bytes as possible; adds the time that this took to `worked`.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        worked: &mut Duration,
        count: impl FnMut(usize),
    ) -> Poll<Result<(), Fault>> {
        let mut slice = TimeSlice::default();
        let done = self.go_on(cx, from, to, &mut slice, count);
        *worked += slice.spent();
        done
    }

    /// Moves bytes until the source is empty, the destination full, or the slice used up.
    fn go_on(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        slice: &mut TimeSlice,
        mut count: impl FnMut(usize),
    ) -> Poll<Result<(), Fault>> {
        loop {
            match self.phase {
                Phase::Copy => match self.step(cx, from, to)? {
                    Moved::Bytes(n) => {
                        self.moved += n as u64;
                        count(n);
                        if slice.is_over_for_all(n) {
                            let _ = to.poll_flush(cx).map_err(Fault::To)?;
                            give_way(cx);
                            return Poll::Pending;
                        }
                    }
                    Moved::SourceEmpty => {
                        if to.complete() {
                            // A source that keeps its connection open would never end the
                            // direction.
                            self.phase = Phase::Finish;
                            continue;
                        }
                        let _ = to.poll_flush(cx).map_err(Fault::To)?;
                        if self.wake_less(cx, from, to).map_err(Fault::From)? {
                            continue;
                        }
                        return Poll::Pending;
                    }
                    Moved::TargetFull => return Poll::Pending,
                    Moved::End => self.phase = Phase::Finish,
                },
                Phase::Finish => {
                    ready!(to.poll_finish(cx)).map_err(Fault::To)?;
                    self.phase = Phase::Done;
                }
                Phase::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl Direction {
    /// Has the current runtime watch the socket of the source. Other events that a source waits
    /// for, the task of a session or a timer, wake across runtimes.
    fn move_source(&mut self, source: &mut dyn Stream) -> io::Result<()> {
        let Some(source) = source.bottom() else {
            return Ok(());
        };
        if let Some(large) = &mut self.large {
            // Its timer belongs to the previous runtime.
            large.bulk.end(source);
        }
        source.watch_from_here()
    }

    /// Makes a fast source that is empty now wake its reader less often. Returns true if the source
    /// has to be polled again.
    fn wake_less(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
    ) -> io::Result<bool> {
        if self.moved < LARGE {
            return Ok(false);
        }
        let most = match (from.bare(), to.bare()) {
            (Some(_), Some(_)) => bulk::PASSED,
            _ => bulk::OPENED,
        };
        let Some(source) = from.bottom() else {
            return Ok(false);
        };
        let large = self.large.get_or_insert_default();
        if large.glance.is_fast(self.moved) {
            source.watch_when_asked(cx)?;
        }
        Ok(large.bulk.poll_pause(cx, source, self.moved, most))
    }

    /// Moves some bytes in the cheapest way that the two streams allow.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
    ) -> Result<Moved, Fault> {
        if let (Some(from), Some(to)) = (from.bare(), to.bare())
            && from.buffered() == 0
            && !matches!(self.splice, Splice::Never)
        {
            // Bytes read with the handshake are sent first: nothing else may be copied behind them.
            match to.poll_flush(cx) {
                Poll::Ready(done) => done.map_err(Fault::To)?,
                Poll::Pending => return Ok(Moved::TargetFull),
            }
            if let Some(moved) = self.splice_step(cx, from, to)? {
                return Ok(moved);
            }
        }
        copy_step(cx, from, to)
    }

    /// Splices from socket to socket through a pipe. Returns `None` if the bytes have to be copied.
    fn splice_step(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Tcp,
        to: &mut Tcp,
    ) -> Result<Option<Moved>, Fault> {
        if matches!(self.splice, Splice::Idle) {
            // Readiness first, so that no task holds a pipe while it waits.
            match from.poll_readable(cx) {
                Poll::Ready(done) => done.map_err(Fault::From)?,
                Poll::Pending => return Ok(Some(Moved::SourceEmpty)),
            }
            match splice::lease_pipe() {
                Some(pipe) => self.splice = Splice::Flowing(pipe),
                None => return Ok(None),
            }
        }
        let Splice::Flowing(pipe) = &mut self.splice else {
            return Ok(None);
        };
        if pipe.buffered() == 0 {
            match from.poll_fill_pipe(cx, pipe) {
                Poll::Ready(Ok(0)) => {
                    self.splice = Splice::Idle;
                    return Ok(Some(Moved::End));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::InvalidInput => {
                    self.splice = Splice::Never;
                    return Ok(None);
                }
                Poll::Ready(Err(e)) => return Err(Fault::From(e)),
                Poll::Pending => {
                    self.splice = Splice::Idle;
                    return Ok(Some(Moved::SourceEmpty));
                }
            }
        }
        match to.poll_drain_pipe(cx, pipe) {
            Poll::Ready(Ok(n)) => Ok(Some(Moved::Bytes(n))),
            Poll::Ready(Err(e)) => Err(Fault::To(e)),
            Poll::Pending => Ok(Some(Moved::TargetFull)),
        }
    }
}

/// Moves bytes through memory: read into the slot, or written from where they were opened.
fn copy_step(
    cx: &mut Context<'_>,
    from: &mut dyn Stream,
    to: &mut dyn Stream,
) -> Result<Moved, Fault> {
    if let Some(socket) = from.bare()
        && socket.buffered() == 0
    {
        // From the socket straight into the place where the destination seals. Readiness first, so
        // that no task holds a buffer while it waits.
        match socket.poll_readable(cx) {
            Poll::Ready(done) => done.map_err(Fault::From)?,
            Poll::Pending => return Ok(Moved::SourceEmpty),
        }
        match to.poll_slot(cx, 1) {
            Poll::Ready(Ok(0)) => return Ok(Moved::End),
            Poll::Ready(done) => drop(done.map_err(Fault::To)?),
            Poll::Pending => return Ok(Moved::TargetFull),
        }
        let mut slots: [IoSliceMut<'_>; SCATTER] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let count = to.slots(&mut slots);
        return match socket.poll_read_into(cx, subslice_mut(&mut slots, ..count), Short::Ask) {
            Poll::Ready(Ok(0)) => Ok(Moved::End),
            Poll::Ready(Ok(n)) => to.commit(n).map(|()| Moved::Bytes(n)).map_err(Fault::To),
            Poll::Ready(Err(e)) => Err(Fault::From(e)),
            Poll::Pending => Ok(Moved::SourceEmpty),
        };
    }
    match from.poll_fill(cx, 1) {
        Poll::Ready(Ok(0)) => return Ok(Moved::End),
        Poll::Ready(done) => drop(done.map_err(Fault::From)?),
        Poll::Pending => return Ok(Moved::SourceEmpty),
    }
    if let Some(socket) = to.bare() {
        // From where the source opened the bytes straight to the socket, all records in one write.
        let mut runs: [IoSlice<'_>; GATHER] = std::array::from_fn(|_| IoSlice::new(&[]));
        let count = from.runs(&mut runs);
        return match socket.poll_write_from(cx, subslice(&runs, ..count)) {
            Poll::Ready(Ok(0)) => Err(Fault::To(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(n)) => {
                from.consume(n);
                Ok(Moved::Bytes(n))
            }
            Poll::Ready(Err(e)) => Err(Fault::To(e)),
            Poll::Pending => Ok(Moved::TargetFull),
        };
    }
    match to.poll_slot(cx, 1) {
        Poll::Ready(Ok(0)) => return Ok(Moved::End),
        Poll::Ready(done) => drop(done.map_err(Fault::To)?),
        Poll::Pending => return Ok(Moved::TargetFull),
    }
    let (lent, slot) = (from.filled(), to.slot());
    let n = lent.len().min(slot.len());
    if let (Some(lent), Some(slot)) = (lent.get(..n), slot.get_mut(..n)) {
        slot.copy_from_slice(lent);
    }
    from.consume(n);
    to.commit(n).map(|()| Moved::Bytes(n)).map_err(Fault::To)
}
