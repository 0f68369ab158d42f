//! Reading the header of a keyed protocol: what every keyed listener does alike.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill, send};
use adit_wire::{Broken, Handshake, Rx, Step, Tx};
use tokio::time::{Instant, timeout_at};

use super::{Inbound, Rejection, Rejects};
use crate::{AcceptError, Place};

/// What becomes of a connection without a request.
pub(crate) type Verdict = Result<Inbound, AcceptError>;

/// What a connection has shown so far.
pub(crate) struct Seen {
    /// Its place among those without a request.
    pub(super) place: Place,
    /// When it came.
    pub(super) began: Instant,
    /// By when it has to be a request.
    pub(super) deadline: Instant,
    /// When its last bytes were found, before anything was made of them: what a judgement costs
    /// must not move the reaction (SEC-P3).
    pub(super) last: Instant,
    /// Whether the place was lost.
    pub(super) evicted: bool,
    /// Whether there was enough to judge.
    pub(super) whole: bool,
    /// Bytes that were used up.
    pub(super) taken: usize,
    /// Bytes that are known, used up or not.
    noted: usize,
    /// All bytes as they came, if they are kept.
    pub(super) bytes: Vec<u8>,
    keep: bool,
    /// Something was said: no decoy can take over any more.
    pub(super) answered: bool,
}

impl Seen {
    /// A connection that has just come, and has `patience` to become a request.
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

    /// By when it has to be a request.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Takes note of new bytes. The core opens them in place, so this is the time to keep them.
    pub(super) fn note(&mut self, new: &[u8]) {
        self.last = Instant::now();
        self.noted += new.len();
        if self.keep {
            self.bytes.extend_from_slice(new);
        }
    }

    /// Takes note of what stands in `filled` behind what is known already.
    fn catch_up(&mut self, filled: &[u8]) {
        let known = self.noted.saturating_sub(self.taken);
        if let Some(new) = filled.get(known..).filter(|new| !new.is_empty()) {
            self.note(new);
        }
    }

    /// Leaves the connection, which came to `port`, to `rejects`.
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

/// Does `work` until `deadline`, as long as the connection has its place.
pub(super) async fn in_time<T>(
    deadline: Instant,
    place: &Place,
    work: impl Future<Output = Result<T, AcceptError>>,
) -> Result<T, AcceptError> {
    let work = timeout_at(deadline, work);
    let work = async { work.await.unwrap_or(Err(AcceptError::Deadline)) };
    place.keep(work).await
}

/// Runs `core`, which sends nothing, until it is done; gives what the connection has shown too.
/// Whatever goes wrong, a deadline that passes too, is left to `rejects`, and so is the connection.
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
        // Only a redirect of ShadowsocksR asks for the port.
        Err(why) => Err(seen.reject(io, why, rejects, 0)),
    }
}

/// Steps through `core`; its answers are sent before the next step. It can be given up at any
/// point at which it waits.
pub(super) async fn step_through<H: Handshake<Error = Broken>>(
    io: &mut dyn Stream,
    core: &mut H,
    seen: &mut Seen,
) -> Result<H::Output, AcceptError> {
    let (mut want, mut answer) = (1, Vec::new());
    loop {
        // Read by read, so that what is too short is known as well.
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
