//! Reading the header of a keyed protocol, as all keyed listeners do.

use std::sync::Arc;
use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill_to, write_and_flush};
use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError};
use tokio::time::{Instant, timeout_at};

use super::{InboundRequest, PendingRejection, RejectHandler};
use crate::replay_claims::{FleetVerdict, UnconfirmedDecisions};
use crate::{AcceptError, FilterClaims, HandshakeSlot};

/// The result for a connection: a request, or the reason why there is none.
pub(crate) type AcceptResult = Result<InboundRequest, AcceptError>;

/// The progress of a connection that has not made its request yet.
pub(crate) struct ConnectionProgress {
    /// Its slot among the connections without a request.
    pub(super) slot: HandshakeSlot,
    /// Time at which it was accepted.
    pub(super) accepted_at: Instant,
    /// Time by which its request has to be complete.
    pub(super) deadline: Instant,
    /// Arrival time of its last bytes, taken before they are processed: the duration of the decision must not
    /// delay the reaction (SEC-P3).
    pub(super) last_arrival: Instant,
    /// True if the slot was lost to a newer connection.
    pub(super) evicted: bool,
    /// True if enough bytes for a decision have arrived.
    pub(super) is_decidable: bool,
    /// Number of bytes consumed.
    pub(super) consumed: usize,
    /// Number of bytes recorded, consumed or not.
    recorded: usize,
    /// All bytes as received, if the reject policy needs them.
    pub(super) bytes: Vec<u8>,
    keep: bool,
    /// True if a reply was sent, so that no decoy can take over.
    pub(super) answered: bool,
    /// The filter of replays that decides in the current handshake.
    pub(super) claims: Option<Arc<FilterClaims>>,
    /// The verdict of other nodes about what that filter has accepted.
    pub(super) verdict: FleetVerdict,
}

impl ConnectionProgress {
    /// Starts tracking a new connection, which has `patience` to make its request.
    pub(crate) fn new(patience: Duration, slot: HandshakeSlot, rejects: &RejectHandler) -> Self {
        let accepted_at = Instant::now();
        Self {
            slot,
            evicted: false,
            accepted_at,
            deadline: accepted_at + patience,
            last_arrival: accepted_at,
            is_decidable: false,
            consumed: 0,
            recorded: 0,
            bytes: Vec::new(),
            keep: rejects.needs_raw_bytes(),
            answered: false,
            claims: None,
            verdict: FleetVerdict::default(),
        }
    }

    /// Returns the time by which the request has to be complete.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Records new bytes. The core decrypts them in place, so they have to be copied before it runs.
    pub(super) fn record_bytes(&mut self, new: &[u8]) {
        self.last_arrival = Instant::now();
        self.recorded += new.len();
        if self.keep {
            self.bytes.extend_from_slice(new);
        }
    }

    /// Records the bytes in `filled` that follow those recorded already.
    fn record_filled(&mut self, filled: &[u8]) {
        let known = self.recorded.saturating_sub(self.consumed);
        if let Some(new) = filled.get(known..).filter(|new| !new.is_empty()) {
            self.record_bytes(new);
        }
    }

    /// Passes the connection, which arrived on `port`, to `rejects`.
    pub(crate) fn reject_connection(
        mut self,
        io: BoxStream,
        why: AcceptError,
        rejects: &Arc<RejectHandler>,
        port: u16,
    ) -> AcceptResult {
        if let AcceptError::Io(e) = why {
            return Err(e.into());
        }
        self.evicted = matches!(why, AcceptError::Evicted);
        let rejects = rejects.clone();
        let reaction = Box::pin(async move { rejects.apply_policy(io, self, port).await });
        Ok(InboundRequest::Rejected(PendingRejection { why, reaction }))
    }
}

/// Runs `work` until `deadline`, or until the connection loses its slot.
pub(super) async fn run_in_time<T>(
    deadline: Instant,
    place: &HandshakeSlot,
    work: impl Future<Output = Result<T, AcceptError>>,
) -> Result<T, AcceptError> {
    let work = timeout_at(deadline, work);
    let work = async { work.await.unwrap_or(Err(AcceptError::Deadline)) };
    place.run_while_held(work).await
}

/// Runs `core`, which sends nothing, to completion; also returns the progress of the connection. On any
/// error, including a missed deadline, the connection is passed to `rejects`. `claims` are those of the filter that the
/// core asks, if it asks one.
pub(super) async fn read_header<H: Handshake<Error = ProtocolError>>(
    mut io: BoxStream,
    mut core: H,
    patience: Duration,
    place: HandshakeSlot,
    rejects: &Arc<RejectHandler>,
    claims: Option<Arc<FilterClaims>>,
) -> Result<(BoxStream, H::Output, ConnectionProgress), AcceptResult> {
    let mut seen = ConnectionProgress::new(patience, place.clone(), rejects);
    seen.claims = claims;
    let until = seen.deadline;
    let steps = drive_handshake(&mut io, &mut core, &mut seen);
    match run_in_time(until, &place, steps).await {
        Ok(output) => Ok((io, output, seen)),
        // Only a redirect of ShadowsocksR needs the port.
        Err(why) => Err(seen.reject_connection(io, why, rejects, 0)),
    }
}

/// Drives `core` step by step and sends its replies before the next step.
///
/// # Cancel safety
///
/// The future can be dropped at any point at which it waits.
pub(super) async fn drive_handshake<H: Handshake<Error = ProtocolError>>(
    io: &mut dyn Stream,
    core: &mut H,
    seen: &mut ConnectionProgress,
) -> Result<H::Output, AcceptError> {
    let (mut want, mut answer) = (1, Vec::new());
    loop {
        // Recorded after each read, so that incomplete headers are known as well.
        seen.record_filled(io.filled());
        let mut have = io.filled().len();
        while have < want {
            let now = fill_to(io, have + 1).await?;
            if now <= have {
                let short = ProtocolError::Truncated("the request header");
                return Err(AcceptError::Rejected(short));
            }
            seen.record_filled(io.filled());
            have = now;
        }
        let mut rx = HandshakeInput::new(io.filled());
        let mut tx = HandshakeOutput::new(&mut answer);
        let mut step = || core.step(&mut rx, &mut tx);
        let (step, mut decisions) = match &seen.claims {
            Some(claims) => claims.observe(step),
            None => (step(), UnconfirmedDecisions::default()),
        };
        let mut step = step.map_err(AcceptError::Rejected);
        if step.is_ok() && !decisions.are_confirmed_by_successor().await {
            step = Err(AcceptError::Rejected(ProtocolError::Replayed));
        }
        seen.verdict.extend(decisions.fleet);
        let step = step.inspect_err(|_| seen.is_decidable = true)?;
        let eaten = rx.consumed();
        io.consume(eaten);
        seen.consumed += eaten;
        if !answer.is_empty() {
            seen.answered = true;
            write_and_flush(io, &answer).await?;
            answer.clear();
        }
        match step {
            HandshakeProgress::Done(output) => return Ok(output),
            HandshakeProgress::NeedMore { total } => want = total,
        }
    }
}
