//! Reading the header of a keyed protocol: what every keyed listener does alike.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill};
use adit_wire::{Broken, Handshake, Rx, Step, Tx};
use tokio::time::{Instant, timeout_at};

use super::{Inbound, Rejection, Rejects};
use crate::AcceptError;

/// What becomes of a connection without a request.
pub(super) type Verdict = Result<Inbound, AcceptError>;

/// What a connection has shown so far.
pub(super) struct Seen {
    /// When it came.
    pub(super) began: Instant,
    /// By when it has to be a request.
    pub(super) deadline: Instant,
    /// When its last bytes were found, before anything was made of them: what a judgement costs
    /// must not move the reaction (SEC-P3).
    pub(super) last: Instant,
    /// Whether there was enough to judge.
    pub(super) whole: bool,
    /// Bytes that were used up.
    pub(super) taken: usize,
    /// All bytes as they came, if they are kept.
    pub(super) bytes: Vec<u8>,
    keep: bool,
}

impl Seen {
    fn new(patience: Duration, rejects: &Rejects) -> Self {
        let began = Instant::now();
        Self {
            began,
            deadline: began + patience,
            last: began,
            whole: false,
            taken: 0,
            bytes: Vec::new(),
            keep: rejects.keeps_bytes(),
        }
    }

    /// Takes note of new bytes. The core opens them in place, so this is the time to keep them.
    fn note(&mut self, new: &[u8]) {
        self.last = Instant::now();
        if self.keep {
            self.bytes.extend_from_slice(new);
        }
    }
}

/// Runs `core`, which sends nothing, until it is done. Whatever goes wrong, a deadline that passes
/// too, is left to `rejects`, and so is the connection.
pub(super) async fn read<H: Handshake<Error = Broken>>(
    mut io: BoxStream,
    core: H,
    patience: Duration,
    rejects: &Arc<Rejects>,
) -> Result<(BoxStream, H::Output), Verdict> {
    let mut seen = Seen::new(patience, rejects);
    let run = timeout_at(seen.deadline, step_through(&mut io, core, &mut seen)).await;
    match run.unwrap_or(Err(AcceptError::Deadline)) {
        Ok(output) => Ok((io, output)),
        Err(AcceptError::Io(e)) => Err(Err(e.into())),
        Err(why) => {
            let rejects = rejects.clone();
            let reaction = Box::pin(async move { rejects.apply(io, seen).await });
            Err(Ok(Inbound::Rejected(Rejection { why, reaction })))
        }
    }
}

async fn step_through<H: Handshake<Error = Broken>>(
    io: &mut BoxStream,
    mut core: H,
    seen: &mut Seen,
) -> Result<H::Output, AcceptError> {
    let mut want = 1;
    loop {
        // Read by read, so that what is too short is known as well.
        let mut have = io.filled().len();
        while have < want {
            let now = fill(io, have + 1).await?;
            if now <= have {
                let short = Broken::Truncated("the request header");
                return Err(AcceptError::Rejected(short));
            }
            seen.note(io.filled().get(have..).unwrap_or_default());
            have = now;
        }
        let mut rx = Rx::new(io.filled());
        let step = core.step(&mut rx, &mut Tx::new(&mut Vec::new()));
        let step = step.map_err(|why| {
            seen.whole = true;
            AcceptError::Rejected(why)
        })?;
        let eaten = rx.eaten();
        io.consume(eaten);
        seen.taken += eaten;
        match step {
            Step::Done(output) => return Ok(output),
            Step::NeedMore { total } => want = total,
        }
    }
}
