//! Reading the header of a keyed protocol: what every keyed listener does alike.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill};
use adit_wire::{Broken, Handshake, Rx, Step, Tx};
use tokio::time::timeout;

use super::{Inbound, Rejection, Rejects};
use crate::AcceptError;

/// What becomes of a connection without a request.
pub(super) type Verdict = Result<Inbound, AcceptError>;

/// Runs `core`, which sends nothing, until it is done; gives the bytes as they came too, if `rejects`
/// would want them. Whatever goes wrong, a deadline that passes too, is left to `rejects`, and so is
/// the connection.
pub(super) async fn read<H: Handshake<Error = Broken>>(
    mut io: BoxStream,
    core: H,
    deadline: Duration,
    rejects: &Arc<Rejects>,
) -> Result<(BoxStream, H::Output, Vec<u8>), Verdict> {
    let mut seen = Vec::new();
    let run = step_through(&mut io, core, rejects.keeps_bytes(), &mut seen);
    let run = timeout(deadline, run).await;
    match run.unwrap_or(Err(AcceptError::Deadline)) {
        Ok(output) => Ok((io, output, seen)),
        Err(AcceptError::Io(e)) => Err(Err(e.into())),
        Err(why) => {
            let rejects = rejects.clone();
            let reaction = Box::pin(async move { rejects.apply(io, &seen).await });
            Err(Ok(Inbound::Rejected(Rejection { why, reaction })))
        }
    }
}

/// `seen` then holds the bytes as they came, if they are kept.
async fn step_through<H: Handshake<Error = Broken>>(
    io: &mut BoxStream,
    mut core: H,
    keep: bool,
    seen: &mut Vec<u8>,
) -> Result<H::Output, AcceptError> {
    let (mut want, mut taken) = (1, 0);
    loop {
        if fill(io, want).await? < want {
            let short = Broken::Truncated("the request header");
            return Err(AcceptError::Rejected(short));
        }
        let bytes = io.filled();
        if keep {
            // As they came: the core opens them in place.
            seen.extend_from_slice(bytes.get(seen.len() - taken..).unwrap_or_default());
        }
        let mut rx = Rx::new(bytes);
        let step = core
            .step(&mut rx, &mut Tx::new(&mut Vec::new()))
            .map_err(AcceptError::Rejected)?;
        let eaten = rx.eaten();
        io.consume(eaten);
        taken += eaten;
        match step {
            Step::Done(output) => return Ok(output),
            Step::NeedMore { total } => want = total,
        }
    }
}
