//! Reading the header of a keyed protocol, as all keyed listeners do.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill, send};
use adit_wire::{Broken, Handshake, Rx, Step, Tx};
use tokio::time::{Instant, timeout_at};

use super::{Inbound, Rejection, Rejects};
use crate::{AcceptError, Place};

/// The result for a connection: a request, or the reason why there is none.
pub(crate) type Verdict = Result<Inbound, AcceptError>;

/// The progress of a connection that has not made its request yet.
pub(crate) struct Seen {
    /// Its slot among the connections without a request.
    pub(super) place: Place,
    /// Time at which it was accepted.
    pub(super) began: Instant,
    /// Time by which its request has to be complete.
    pub(super) deadline: Instant,
    /// Arrival time of its last bytes, taken before they are processed: the duration of the decision must not
    /// delay the reaction (SEC-P3).
    pub(super) last: Instant,
    /// True if the slot was lost to a newer connection.
    pub(super) evicted: bool,
    /// True if enough bytes for a decision have arrived.
    pub(super) whole: bool,
    /// Number of bytes consumed.
    pub(super) taken: usize,
    /// Number of bytes recorded, consumed or not.
    noted: usize,
    /// All bytes as received, if the reject policy needs them.
    pub(super) bytes: Vec<u8>,
    keep: bool,
    /// True if a reply was sent, so that no decoy can take over.
    pub(super) answered: bool,
}

impl Seen {
    /// Starts tracking a new connection, which has `patience` to make its request.
    pub(crate) fn new(patience: Duration, place: Place, rejects: &Rejects) -> Self {
        let began = Instant::now();
        Self {
            place,
            evicted: false,
            began,
            deadline: began + patience,
            last: began,
            whole: false,
            taken: 0,
            noted: 0,
            bytes: Vec::new(),
            keep: rejects.keeps_bytes(),
            answered: false,
        }
    }

    /// Returns the time by which the request has to be complete.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Records new bytes. The core decrypts them in place, so they have to be copied before it runs.
    pub(super) fn note(&mut self, new: &[u8]) {
        self.last = Instant::now();
        self.noted += new.len();
        if self.keep {
            self.bytes.extend_from_slice(new);
        }
    }

    /// Records the bytes in `filled` that follow those recorded already.
    fn catch_up(&mut self, filled: &[u8]) {
        let known = self.noted.saturating_sub(self.taken);
        if let Some(new) = filled.get(known..).filter(|new| !new.is_empty()) {
            self.note(new);
        }
    }

    /// Passes the connection, which arrived on `port`, to `rejects`.
    pub(crate) fn reject(
        mut self,
        io: BoxStream,
        why: AcceptError,
        rejects: &Arc<Rejects>,
        port: u16,
    ) -> Verdict {
        if let AcceptError::Io(e) = why {
            return Err(e.into());
        }
        self.evicted = matches!(why, AcceptError::Evicted);
        let rejects = rejects.clone();
        let reaction = Box::pin(async move { rejects.apply(io, self, port).await });
        Ok(Inbound::Rejected(Rejection { why, reaction }))
    }
}

/// Runs `work` until `deadline`, or until the connection loses its slot.
pub(super) async fn in_time<T>(
    deadline: Instant,
    place: &Place,
    work: impl Future<Output = Result<T, AcceptError>>,
) -> Result<T, AcceptError> {
    let work = timeout_at(deadline, work);
    let work = async { work.await.unwrap_or(Err(AcceptError::Deadline)) };
    place.keep(work).await
}

/// Runs `core`, which sends nothing, to completion; also returns the progress of the connection. On any
/// error, including a missed deadline, the connection is passed to `rejects`.
pub(super) async fn read<H: Handshake<Error = Broken>>(
    mut io: BoxStream,
    mut core: H,
    patience: Duration,
    place: Place,
    rejects: &Arc<Rejects>,
) -> Result<(BoxStream, H::Output, Seen), Verdict> {
    let mut seen = Seen::new(patience, place.clone(), rejects);
    let until = seen.deadline;
    let steps = step_through(&mut io, &mut core, &mut seen);
    match in_time(until, &place, steps).await {
        Ok(output) => Ok((io, output, seen)),
        // Only a redirect of ShadowsocksR needs the port.
        Err(why) => Err(seen.reject(io, why, rejects, 0)),
    }
}

/// Drives `core` step by step and sends its replies before the next step.
///
/// # Cancel safety
///
/// The future can be dropped at any point at which it waits.
pub(super) async fn step_through<H: Handshake<Error = Broken>>(
    io: &mut dyn Stream,
    core: &mut H,
    seen: &mut Seen,
) -> Result<H::Output, AcceptError> {
    let (mut want, mut answer) = (1, Vec::new());
    loop {
        // Recorded after each read, so that incomplete headers are known as well.
        seen.catch_up(io.filled());
        let mut have = io.filled().len();
        while have < want {
            let now = fill(io, have + 1).await?;
            if now <= have {
                let short = Broken::Truncated("the request header");
                return Err(AcceptError::Rejected(short));
            }
            seen.catch_up(io.filled());
            have = now;
        }
        let mut rx = Rx::new(io.filled());
        let step = core.step(&mut rx, &mut Tx::new(&mut answer));
        let step = step.map_err(|why| {
            seen.whole = true;
            AcceptError::Rejected(why)
        })?;
        let eaten = rx.eaten();
        io.consume(eaten);
        seen.taken += eaten;
        if !answer.is_empty() {
            seen.answered = true;
            send(io, &answer).await?;
            answer.clear();
        }
        match step {
            Step::Done(output) => return Ok(output),
            Step::NeedMore { total } => want = total,
        }
    }
}
