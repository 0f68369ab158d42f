//! The relay between two streams. Bytes that are not spliced pass through `copy_step`.

mod copy_step;
mod direction_counter;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_net::splice::{self, Pipe};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::bulk::{self, BulkDetector, RateMeter};
use crate::lane::{self, TaskLoad};
use crate::time_slice::{TimeSlice, yield_to_others};
use crate::{CountBytes, Stream, Tcp};
use copy_step::copy_step;
use direction_counter::{DirectionCounter, DownCounter, UpCounter};

/// Bytes below which the rate of a direction is not measured.
const LARGE_FLOW: u64 = 1 << 20;
/// Number of consecutive quiet parts after which a deadline has passed. A deadline is met to a
/// quarter of itself, and the clock is not read per chunk.
const QUIET_PARTS: u32 = 4;

/// Deadlines of a relayed session. Zero means never.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RelayTimeouts {
    /// Maximum silence in both directions.
    pub idle: Duration,
    /// Maximum silence once one direction has ended.
    pub half_close_idle: Duration,
}

impl RelayTimeouts {
    /// No deadlines: sessions last until one end closes them.
    pub const NEVER: Self = Self {
        idle: Duration::ZERO,
        half_close_idle: Duration::ZERO,
    };

    /// Sets the maximum silence in both directions.
    #[must_use]
    pub const fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets the maximum silence once one direction has ended.
    #[must_use]
    pub const fn with_half_close_idle(mut self, idle: Duration) -> Self {
        self.half_close_idle = idle;
        self
    }
}

/// Result of a relayed session.
#[derive(Debug)]
#[non_exhaustive]
pub struct RelayOutcome {
    /// Payload bytes from near to far.
    pub up: u64,
    /// Payload bytes from far to near.
    pub down: u64,
    /// The reason for the end.
    pub end: EndReason,
    /// True if the target ended its direction first.
    pub target_ended_first: bool,
}

/// Reason for the end of a session.
///
/// The enum is exhaustive, so that programs that decide which side is at fault miss no reason.
#[derive(Debug)]
pub enum EndReason {
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
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_stream::{EndReason, RelayTimeouts, Tcp, TrafficMeter, relay};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let addr = listener.local_addr()?;
/// let mut client = TcpStream::connect(addr).await?;
/// let (near, _) = listener.accept().await?;
/// let far = TcpStream::connect(addr).await?;
/// let (mut target, _) = listener.accept().await?;
///
/// client.write_all(b"hello").await?;
/// client.shutdown().await?;
/// target.shutdown().await?;
/// let meter = TrafficMeter::default();
/// let outcome =
///     relay(&mut Tcp::new(near), &mut Tcp::new(far), &RelayTimeouts::NEVER, &meter).await;
/// assert!(matches!(outcome.end, EndReason::Finished));
/// assert_eq!((outcome.up, outcome.down), (5, 0));
///
/// let mut text = String::new();
/// target.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
pub async fn relay(
    near: &mut dyn Stream,
    far: &mut dyn Stream,
    limits: &RelayTimeouts,
    meter: &dyn CountBytes,
) -> RelayOutcome {
    let (mut up, mut down) = (Direction::default(), Direction::default());
    let mut quiet = SilenceDetector::default();
    let mut timer = pin!(sleep(check_interval(limits, false)));
    let mut first = None;
    let mut load = TaskLoad::default();
    let end = poll_fn(|cx| {
        let mut worked = Duration::ZERO;
        let mut a = up.poll(cx, near, far, &mut worked, &UpCounter(meter));
        let b = down.poll(cx, far, near, &mut worked, &DownCounter(meter));
        if b.is_ready() && a.is_pending() {
            // The end of the answer may also end the direction of the request.
            a = up.poll(cx, near, far, &mut worked, &UpCounter(meter));
        }
        if first.is_none() && (a.is_ready() || b.is_ready()) {
            first = Some(b.is_ready());
        }
        match (a, b) {
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(EndReason::Finished),
            (Poll::Ready(Err(FailedSide::From(e))), _)
            | (_, Poll::Ready(Err(FailedSide::To(e)))) => Poll::Ready(EndReason::Near(e)),
            (Poll::Ready(Err(FailedSide::To(e))), _)
            | (_, Poll::Ready(Err(FailedSide::From(e)))) => Poll::Ready(EndReason::Far(e)),
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
                    lane::change_lane(lane);
                    return Poll::Pending;
                }
                quiet.poll(cx, timer.as_mut(), limits, half, up.moved + down.moved)
            }
        }
    })
    .await;
    if !matches!(end, EndReason::Finished) {
        near.abort();
        far.abort();
    }
    RelayOutcome {
        up: up.moved,
        down: down.moved,
        end,
        target_ended_first: first.unwrap_or(false),
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
) -> Result<(), EndReason> {
    up.move_source(near).map_err(EndReason::Near)?;
    down.move_source(far).map_err(EndReason::Far)
}

/// Returns the time between two looks at the counters.
fn check_interval(limits: &RelayTimeouts, half: bool) -> Duration {
    let limit = if half {
        limits.half_close_idle
    } else {
        limits.idle
    };
    if limit.is_zero() {
        Duration::from_secs(1 << 30)
    } else {
        limit / QUIET_PARTS
    }
}

/// Detects silence by comparing the counters at intervals.
#[derive(Default)]
struct SilenceDetector {
    moved: u64,
    parts: u32,
    half: bool,
}

impl SilenceDetector {
    /// Checks the counters when the timer fires. Ready with [`EndReason::Idle`] after too much silence.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut Sleep>,
        limits: &RelayTimeouts,
        half: bool,
        moved: u64,
    ) -> Poll<EndReason> {
        if half != self.half {
            (self.half, self.parts) = (half, 0);
            timer
                .as_mut()
                .reset(Instant::now() + check_interval(limits, half));
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if moved == self.moved {
                self.parts += 1;
                if self.parts >= QUIET_PARTS {
                    return Poll::Ready(EndReason::Idle);
                }
            } else {
                (self.moved, self.parts) = (moved, 0);
            }
            timer
                .as_mut()
                .reset(Instant::now() + check_interval(limits, half));
        }
    }
}

/// State of one direction of a session.
#[derive(Default)]
struct Direction {
    phase: Phase,
    moved: u64,
    splice: SpliceState,
    /// Present once the direction has moved enough bytes.
    large: Option<Box<LargeFlow>>,
}

/// Rates of a direction that has moved more than `LARGE_FLOW` bytes.
#[derive(Default)]
struct LargeFlow {
    glance: RateMeter,
    bulk: BulkDetector,
}

/// State of splicing, and the pipe that holds bytes.
#[derive(Default)]
enum SpliceState {
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
enum FailedSide {
    From(io::Error),
    To(io::Error),
}

/// Result of one step of a direction.
enum StepOutcome {
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
        counter: &impl DirectionCounter,
    ) -> Poll<Result<(), FailedSide>> {
        let mut slice = TimeSlice::default();
        let done = self.poll_within(cx, from, to, &mut slice, counter);
        *worked += slice.time_worked();
        done
    }

    /// Moves bytes until the source is empty, the destination full, or the slice used up.
    fn poll_within(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        slice: &mut TimeSlice,
        counter: &impl DirectionCounter,
    ) -> Poll<Result<(), FailedSide>> {
        loop {
            match self.phase {
                Phase::Copy => {
                    let Poll::Ready(most) = counter.poll_allowance(cx) else {
                        let _ = to.poll_flush(cx).map_err(FailedSide::To)?;
                        return Poll::Pending;
                    };
                    match self.move_some(cx, from, to, most)? {
                        StepOutcome::Bytes(n) => {
                            self.moved += n as u64;
                            counter.add(n);
                            if slice.is_used_up_if_unwatched(n) {
                                let _ = to.poll_flush(cx).map_err(FailedSide::To)?;
                                yield_to_others(cx);
                                return Poll::Pending;
                            }
                        }
                        StepOutcome::SourceEmpty => {
                            if to.complete() {
                                // A source that keeps its connection open would never end the
                                // direction.
                                self.phase = Phase::Finish;
                                continue;
                            }
                            let _ = to.poll_flush(cx).map_err(FailedSide::To)?;
                            if self
                                .reduce_wakeups(cx, from, to)
                                .map_err(FailedSide::From)?
                            {
                                continue;
                            }
                            return Poll::Pending;
                        }
                        StepOutcome::TargetFull => return Poll::Pending,
                        StepOutcome::End => self.phase = Phase::Finish,
                    }
                }
                Phase::Finish => {
                    ready!(to.poll_finish(cx)).map_err(FailedSide::To)?;
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
            large.bulk.remove_mark(source);
        }
        source.watch_from_current()
    }

    /// Makes a fast source that is empty now wake its reader less often. Returns true if the source
    /// has to be polled again.
    fn reduce_wakeups(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
    ) -> io::Result<bool> {
        if self.moved < LARGE_FLOW {
            return Ok(false);
        }
        let most = match (from.bare(), to.bare()) {
            (Some(_), Some(_)) => bulk::MAX_MARK_PASSED,
            _ => bulk::MAX_MARK_OPENED,
        };
        let Some(source) = from.bottom() else {
            return Ok(false);
        };
        let large = self.large.get_or_insert_default();
        if large.glance.is_fast(self.moved) {
            source.watch_on_demand(cx)?;
        }
        Ok(large.bulk.poll_pause(cx, source, self.moved, most))
    }

    /// Moves some bytes, at most `most`, in the cheapest way that the two streams allow.
    fn move_some(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
        most: usize,
    ) -> Result<StepOutcome, FailedSide> {
        if let (Some(from), Some(to)) = (from.bare(), to.bare())
            && from.buffered_len() == 0
            && !matches!(self.splice, SpliceState::Never)
        {
            // Bytes read with the handshake are sent first: nothing else may be copied behind them.
            match to.poll_flush(cx) {
                Poll::Ready(done) => done.map_err(FailedSide::To)?,
                Poll::Pending => return Ok(StepOutcome::TargetFull),
            }
            if let Some(moved) = self.splice_step(cx, from, to, most)? {
                return Ok(moved);
            }
        }
        copy_step(cx, from, to, most)
    }

    /// Splices from socket to socket through a pipe. Returns `None` if the bytes have to be copied.
    fn splice_step(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Tcp,
        to: &mut Tcp,
        most: usize,
    ) -> Result<Option<StepOutcome>, FailedSide> {
        if matches!(self.splice, SpliceState::Idle) {
            // Readiness first, so that no task holds a pipe while it waits.
            match from.poll_readable(cx) {
                Poll::Ready(done) => done.map_err(FailedSide::From)?,
                Poll::Pending => return Ok(Some(StepOutcome::SourceEmpty)),
            }
            match splice::lease_pipe() {
                Some(pipe) => self.splice = SpliceState::Flowing(pipe),
                None => return Ok(None),
            }
        }
        let SpliceState::Flowing(pipe) = &mut self.splice else {
            return Ok(None);
        };
        if pipe.buffered() == 0 {
            pipe.set_limit(most);
            match from.poll_fill_pipe(cx, pipe) {
                Poll::Ready(Ok(0)) => {
                    self.splice = SpliceState::Idle;
                    return Ok(Some(StepOutcome::End));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::InvalidInput => {
                    self.splice = SpliceState::Never;
                    return Ok(None);
                }
                Poll::Ready(Err(e)) => return Err(FailedSide::From(e)),
                Poll::Pending => {
                    self.splice = SpliceState::Idle;
                    return Ok(Some(StepOutcome::SourceEmpty));
                }
            }
        }
        match to.poll_drain_pipe(cx, pipe) {
            Poll::Ready(Ok(n)) => Ok(Some(StepOutcome::Bytes(n))),
            Poll::Ready(Err(e)) => Err(FailedSide::To(e)),
            Poll::Pending => Ok(Some(StepOutcome::TargetFull)),
        }
    }
}
