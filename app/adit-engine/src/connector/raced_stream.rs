//! A stream through a group, whose first bytes are sent to further members until one of them answers.

use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};

use adit_stream::lane::RelayLane;
use adit_stream::{BoxStream, Stream, Tcp};
use adit_wire::{Target, subslice};

use super::HopWatch;
use super::group_member::{GroupMember, OpenCount, OpenedStream};
use super::race::{Race, RaceEvent};
use std::collections::VecDeque;
use std::sync::Arc;

/// A stream through a keyed member of a group, which has proved nothing by its connection.
///
/// Until a member answers, the bytes of the client are kept, up to 16 KiB. If the member closes the connection or
/// does not answer within its usual time, the next member receives the same bytes. The first that answers with a
/// byte is used, and the others are dropped. Nothing is sent to a second server after an answer, nor if the bytes may
/// have an effect there ([`is_repeatable`](super::replay_safety::is_repeatable)), nor if there are more than are
/// kept.
pub(super) struct RacedStream(State);

enum State {
    Racing(Box<Race>),
    Settled(SettledStream),
}

/// The stream that has won, or was alone.
pub(super) struct SettledStream {
    io: BoxStream,
    /// Bytes of the client that it has not accepted yet.
    rest: Option<Box<UnsentBytes>>,
    _count: OpenCount,
}

/// Bytes that the winner has not accepted yet, because it answered before.
struct UnsentBytes {
    bytes: Vec<u8>,
    sent: usize,
    finishes: bool,
}

impl SettledStream {
    /// Creates the stream; `unsent` is still to be sent, and `finishes` is true if the client has ended its direction
    /// and the stream has not.
    pub(super) fn new(io: BoxStream, count: OpenCount, unsent: &[u8], finishes: bool) -> Self {
        let rest = (!unsent.is_empty() || finishes).then(|| {
            Box::new(UnsentBytes {
                bytes: unsent.to_vec(),
                sent: 0,
                finishes,
            })
        });
        Self {
            io,
            rest,
            _count: count,
        }
    }

    /// Sends the rest.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(rest) = &mut self.rest {
            ready!(poll_write_kept(
                &mut *self.io,
                cx,
                &rest.bytes,
                &mut rest.sent
            ))?;
            if rest.finishes {
                ready!(self.io.poll_finish(cx))?;
            } else {
                ready!(self.io.poll_flush(cx))?;
            }
            self.rest = None;
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes `kept` from `*written` on, without a flush.
pub(super) fn poll_write_kept(
    io: &mut dyn Stream,
    cx: &mut Context<'_>,
    kept: &[u8],
    written: &mut usize,
) -> Poll<io::Result<()>> {
    while *written < kept.len() {
        let size = ready!(io.poll_slot(cx, 1))?;
        if size == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let rest = subslice(kept, *written..);
        let n = size.min(rest.len());
        if let (Some(slot), Some(from)) = (io.slot().get_mut(..n), rest.get(..n)) {
            slot.copy_from_slice(from);
        }
        io.commit(n)?;
        *written += n;
    }
    Poll::Ready(Ok(()))
}

impl RacedStream {
    /// Creates a stream from the first that was opened. `first` is sent ahead of everything else; `waiting` are the
    /// members that follow.
    pub(super) fn new(
        opened: OpenedStream,
        watch: HopWatch,
        waiting: VecDeque<Arc<GroupMember>>,
        target: Target,
        first: &[u8],
    ) -> Self {
        let race = Race::new(opened, watch, waiting, target, first);
        Self(State::Racing(Box::new(race)))
    }

    /// Wraps a stream that is not raced, and counts it as open.
    pub(super) fn settled(io: BoxStream, count: OpenCount) -> Self {
        Self(State::Settled(SettledStream::new(io, count, &[], false)))
    }

    /// Returns the stream that all calls go to, once there is one that takes all bytes.
    fn only(&self) -> Option<&dyn Stream> {
        match &self.0 {
            State::Racing(race) => race.exclusive(),
            State::Settled(settled) => Some(&*settled.io),
        }
    }

    fn only_mut(&mut self) -> Option<&mut dyn Stream> {
        match &mut self.0 {
            State::Racing(race) => race.exclusive_mut(),
            State::Settled(settled) => Some(&mut *settled.io),
        }
    }
}

impl Stream for RacedStream {
    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        if let State::Racing(race) = &mut self.0 {
            match ready!(race.poll_answer(cx)) {
                RaceEvent::Won(winner) => self.0 = State::Settled(winner),
                RaceEvent::Ended(end) => return Poll::Ready(end.map(|()| 0)),
            }
        }
        match &mut self.0 {
            State::Settled(settled) => {
                if settled.rest.is_some()
                    && let Poll::Ready(sent) = settled.poll_rest(cx)
                {
                    sent?;
                }
                settled.io.poll_fill(cx, want)
            }
            State::Racing(_) => Poll::Pending,
        }
    }

    fn filled(&mut self) -> &mut [u8] {
        match &mut self.0 {
            State::Settled(settled) => settled.io.filled(),
            State::Racing(_) => Default::default(),
        }
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        match &mut self.0 {
            State::Settled(settled) => settled.io.runs(out),
            State::Racing(_) => 0,
        }
    }

    fn consume(&mut self, n: usize) {
        if let State::Settled(settled) = &mut self.0 {
            settled.io.consume(n);
        }
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            State::Settled(settled) => {
                ready!(settled.poll_rest(cx))?;
                settled.io.poll_slot(cx, min)
            }
            State::Racing(race) => race.poll_slot(cx, min),
        }
    }

    fn slot(&mut self) -> &mut [u8] {
        match &mut self.0 {
            State::Settled(settled) => settled.io.slot(),
            State::Racing(race) => race.slot(),
        }
    }

    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        match &mut self.0 {
            State::Settled(settled) => settled.io.slots(out),
            State::Racing(race) => match (race.slot(), out.first_mut()) {
                (slot, Some(first)) if !slot.is_empty() => {
                    *first = IoSliceMut::new(slot);
                    1
                }
                _ => 0,
            },
        }
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        match &mut self.0 {
            State::Settled(settled) => settled.io.commit(n),
            State::Racing(race) => race.commit(n),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            State::Settled(settled) => {
                ready!(settled.poll_rest(cx))?;
                settled.io.poll_flush(cx)
            }
            State::Racing(race) => race.poll_flush(cx),
        }
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            State::Settled(settled) => {
                ready!(settled.poll_rest(cx))?;
                settled.io.poll_finish(cx)
            }
            State::Racing(race) => race.poll_finish(cx),
        }
    }

    fn abort(&mut self) {
        match &mut self.0 {
            State::Settled(settled) => settled.io.abort(),
            State::Racing(race) => race.abort(),
        }
    }

    fn owes_head(&self) -> bool {
        match &self.0 {
            State::Settled(settled) => settled.io.owes_head(),
            State::Racing(race) => race.owes_head(),
        }
    }

    fn complete(&self) -> bool {
        self.only().is_some_and(Stream::complete)
    }

    fn bare(&mut self) -> Option<&mut Tcp> {
        match &mut self.0 {
            State::Settled(settled) if settled.rest.is_none() => settled.io.bare(),
            _ => None,
        }
    }

    fn bottom(&mut self) -> Option<&mut Tcp> {
        self.only_mut()?.bottom()
    }

    fn lane(&self) -> RelayLane {
        self.only().map_or(RelayLane::ByLoad, Stream::lane)
    }
}
