//! The response, sent to the client.

use core::ops::Range;

use adit_wire::{Overhead, ProtocolError, Seal, subslice};

use super::exchange_ends::ExchangeEnds;
use super::progress::BodyProgress;
use super::upgrade_state::UpgradeSwitch;
use crate::MAX_RESPONSE_HEAD;
use crate::framing::{self, Framing};
use crate::head::{
    Fields, HeadError, HeadScan, HopByHop, MinorVersion, StatusLine, split_head, unfold_lines,
};
use crate::server::failure_response;

/// Maximum growth of rewritten heads in bytes: one blank in each status line, then a `Connection`
/// field or a complete 502 response.
const GROWTH: usize = 256;
/// Maximum number of 1xx responses before the final one.
const MAX_INTERIM: usize = 32;
/// Bodies are not split into records; this only keeps sums far from overflow.
const MAX_PAYLOAD: usize = 1 << 30;

/// Forwards the origin's response to the client with its head rewritten: hop-by-hop fields are
/// removed, folded lines and repeated equal lengths become one, and `Connection` is added. 1xx
/// responses are forwarded. The body is forwarded with its framing unchanged, and bytes after it
/// are discarded.
///
/// If the origin's head cannot be forwarded, the client gets a 502 instead, and
/// [`fault`](Self::fault) returns the reason.
#[derive(Debug)]
pub struct ResponseSeal {
    state: State,
    to_head: bool,
    switch: Option<UpgradeSwitch>,
    /// Present if the connection may be reused.
    ends: Option<ExchangeEnds>,
    /// True if the client was told that the connection stays open.
    keeps: bool,
    fault: Option<ProtocolError>,
}

#[derive(Debug)]
enum State {
    Head(PartialHead),
    Body(BodyProgress),
}

/// The part of a head that has arrived.
#[derive(Debug)]
struct PartialHead {
    bytes: Vec<u8>,
    scan: HeadScan,
    interim: usize,
}

impl PartialHead {
    const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            scan: HeadScan::for_response(),
            interim: 0,
        }
    }
}

/// The data after a rewritten head.
enum AfterHead {
    AnotherHead,
    Body {
        framing: Framing,
        /// True if the connection stays open.
        keeps: bool,
    },
}

impl ResponseSeal {
    /// Creates the codec of the response to a request; `to_head` is true for a HEAD request. See
    /// [`super::exchange_codecs`] for requests with an upgrade.
    #[must_use]
    pub const fn new(to_head: bool) -> Self {
        Self {
            state: State::Head(PartialHead::new()),
            to_head,
            switch: None,
            ends: None,
            keeps: false,
            fault: None,
        }
    }

    /// Creates the codec of the response to an upgrade request.
    pub(super) fn with_upgrade(switch: UpgradeSwitch) -> Self {
        Self {
            switch: Some(switch),
            ..Self::new(false)
        }
    }

    /// Creates the codec of a response on a connection that may be reused.
    pub(super) fn with_keep_alive(to_head: bool, ends: ExchangeEnds) -> Self {
        let mut seal = Self::new(to_head);
        seal.ends = Some(ends);
        seal
    }

    /// Returns the reason why the client got a 502 instead of the origin's response.
    #[must_use]
    pub const fn fault(&self) -> Option<ProtocolError> {
        self.fault
    }

    /// True if the origin may close here: not inside a head or a body with a known end.
    #[must_use]
    pub const fn at_boundary(&self) -> bool {
        match &self.state {
            State::Head(_) => false,
            State::Body(progress) => progress.may_close(),
        }
    }

    /// Takes heads off the front of `bytes`, appends the rewritten ones to `out`, and returns the
    /// number of bytes taken.
    fn take_heads(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut taken = 0;
        while let State::Head(head) = &mut self.state {
            let rest = subslice(bytes, taken..);
            let held = head.bytes.len();
            // Bytes of a body after the head are irrelevant here.
            let room = MAX_RESPONSE_HEAD.saturating_sub(held).min(rest.len());
            head.bytes.extend_from_slice(subslice(rest, ..room));
            let found = head.scan.advance(&head.bytes).map_err(protocol_error);
            let end = match found {
                Ok(Some(end)) => end,
                Ok(None) => return bytes.len(),
                Err(why) => {
                    self.answer_failure(why, out);
                    return bytes.len();
                }
            };
            let mut whole = core::mem::take(&mut head.bytes);
            whole.truncate(end);
            taken += end.saturating_sub(held);
            head.scan = HeadScan::for_response();
            head.interim += 1;
            let too_many = head.interim > MAX_INTERIM;
            unfold_lines(&mut whole);
            match self.rewrite_head(&whole, out) {
                Ok(AfterHead::AnotherHead) if too_many => {
                    self.answer_failure(ProtocolError::Malformed("number of 1xx responses"), out);
                }
                Ok(AfterHead::AnotherHead) => {}
                Ok(AfterHead::Body { framing, keeps }) => {
                    self.state = State::Body(BodyProgress::new(framing));
                    self.keeps = keeps;
                }
                Err(what) => self.answer_failure(ProtocolError::Malformed(what), out),
            }
        }
        taken
    }

    /// Appends one rewritten head for the client; nothing if it is invalid.
    fn rewrite_head(&self, head: &[u8], out: &mut Vec<u8>) -> Result<AfterHead, &'static str> {
        let (line, block) = split_head(head);
        let line = StatusLine::parse(line)?;
        let fields = Fields::parse(block)?;
        let hop = HopByHop::from_fields(&fields)?;
        let framing = framing::response_framing(&fields, line.version, line.status, self.to_head)?;
        let (connection, next) = match (line.status, &self.switch) {
            (101, Some(switch)) => {
                switch.accept();
                let framing = Framing::UntilClose;
                let keeps = false;
                let next = AfterHead::Body { framing, keeps };
                (&b"Connection: Upgrade\r\n"[..], next)
            }
            (101, None) => return Err("unrequested upgrade"),
            (100..=199, _) => (&b""[..], AfterHead::AnotherHead),
            (_, switch) => {
                if let Some(switch) = switch {
                    switch.decline();
                }
                // Close while the request is still being sent: the client might cut it short.
                let ends = self.ends.as_ref();
                let keeps =
                    framing != Framing::UntilClose && ends.is_some_and(ExchangeEnds::request_ended);
                let connection: &[u8] = match keeps {
                    true => b"Connection: keep-alive\r\n",
                    false => b"Connection: close\r\n",
                };
                (connection, AfterHead::Body { framing, keeps })
            }
        };
        let status = line.status;
        out.extend_from_slice(format!("{} {status} ", MinorVersion::One.as_str()).as_bytes());
        out.extend_from_slice(line.reason);
        out.extend_from_slice(b"\r\n");
        let mut length = framing::agreed_length(&fields)?;
        for field in fields.iter() {
            if field.is_named("Content-Length") {
                if let Some(digits) = length.take() {
                    field.with_value(digits).write_to(out);
                }
            } else if !hop.contains(field) || (status == 101 && field.is_named("Upgrade")) {
                field.write_to(out);
            }
        }
        out.extend_from_slice(connection);
        out.extend_from_slice(b"\r\n");
        Ok(next)
    }

    /// Answers the client with a 502 in place of the origin.
    fn answer_failure(&mut self, why: ProtocolError, out: &mut Vec<u8>) {
        if let Some(switch) = &self.switch {
            switch.decline();
        }
        out.extend_from_slice(&failure_response(502, None));
        self.fault = Some(why);
        self.state = State::Body(BodyProgress::new(Framing::None));
    }
}

const fn protocol_error(why: HeadError) -> ProtocolError {
    match why {
        HeadError::Malformed(what) => ProtocolError::Malformed(what),
        HeadError::TooLarge(what) => ProtocolError::TooLong {
            what,
            limit: MAX_RESPONSE_HEAD,
        },
    }
}

impl Seal for ResponseSeal {
    fn overhead(&self) -> Overhead {
        let head = match &self.state {
            // The bytes of the head that are in the payload provide their own room.
            State::Head(head) => head.bytes.len() + GROWTH,
            State::Body(_) => 0,
        };
        Overhead {
            head,
            tail: 0,
            max_payload: MAX_PAYLOAD,
        }
    }

    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let no_room = ProtocolError::NoRoom("the response");
        let bytes = record.get(payload.clone()).ok_or(no_room)?;
        let mut heads = Vec::new();
        let taken = self.take_heads(bytes, &mut heads);
        let rest = subslice(bytes, taken..);
        let passed = match &mut self.state {
            State::Head(_) => 0,
            State::Body(progress) => {
                let passed = progress.take_body(rest)?;
                if progress.is_ended()
                    && self.keeps
                    && let Some(ends) = &self.ends
                {
                    ends.set_response();
                }
                passed
            }
        };
        let body = payload.start + taken;
        let start = body.checked_sub(heads.len()).ok_or(no_room)?;
        record
            .get_mut(start..body)
            .ok_or(no_room)?
            .copy_from_slice(&heads);
        Ok(start..body + passed)
    }

    fn is_finished(&self) -> bool {
        matches!(&self.state, State::Body(progress) if progress.is_ended())
    }
}
