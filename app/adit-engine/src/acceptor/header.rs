//! Reading the header of a keyed protocol: what every keyed listener does alike.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill, send};
use adit_wire::{Broken, Handshake, Rx, Step, Tx};
use tokio::time::timeout;

use super::{Inbound, Rejection, Rejects};
use crate::AcceptError;

/// What becomes of a connection without a request.
pub(crate) type Verdict = Result<Inbound, AcceptError>;

/// What a connection has said and heard so far.
pub(crate) struct Seen {
    /// The bytes as they came, if they are kept for a decoy.
    bytes: Vec<u8>,
    taken: usize,
    keep: bool,
    /// Something was said: no decoy can take over any more.
    answered: bool,
}

impl Seen {
    pub(crate) const fn new(rejects: &Rejects) -> Self {
        Self {
            bytes: Vec::new(),
            taken: 0,
            keep: rejects.keeps_bytes(),
            answered: false,
        }
    }

    /// Leaves the connection to `rejects`, which gets it at `port`.
    pub(crate) fn reject(
        self,
        io: BoxStream,
        why: AcceptError,
        rejects: &Arc<Rejects>,
        port: u16,
    ) -> Verdict {
        if let AcceptError::Io(e) = why {
            return Err(e.into());
        }
        let rejects = rejects.clone();
        let reaction = Box::pin(async move {
            let seen = (!self.answered).then_some(&self.bytes[..]);
            rejects.apply(io, seen, port).await;
        });
        Ok(Inbound::Rejected(Rejection { why, reaction }))
    }
}

/// Runs `core`, which sends nothing, until it is done. Whatever goes wrong, a deadline that passes
/// too, is left to `rejects`, and so is the connection.
pub(super) async fn read<H: Handshake<Error = Broken>>(
    mut io: BoxStream,
    mut core: H,
    deadline: Duration,
    rejects: &Arc<Rejects>,
) -> Result<(BoxStream, H::Output), Verdict> {
    let mut seen = Seen::new(rejects);
    let run = timeout(deadline, step_through(&mut io, &mut core, &mut seen)).await;
    match run.unwrap_or(Err(AcceptError::Deadline)) {
        Ok(output) => Ok((io, output)),
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
        if fill(io, want).await? < want {
            let short = Broken::Truncated("the request header");
            return Err(AcceptError::Rejected(short));
        }
        let bytes = io.filled();
        if seen.keep {
            // As they came: the core opens them in place.
            let known = seen.bytes.len() - seen.taken;
            seen.bytes
                .extend_from_slice(bytes.get(known..).unwrap_or_default());
        }
        let mut rx = Rx::new(bytes);
        let step = core
            .step(&mut rx, &mut Tx::new(&mut answer))
            .map_err(AcceptError::Rejected)?;
        let eaten = rx.eaten();
        io.consume(eaten);
        if seen.keep {
            seen.taken += eaten;
        }
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
