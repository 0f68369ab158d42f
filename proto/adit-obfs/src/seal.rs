//! The sealing codec.

use core::fmt;
use core::ops::Range;

use adit_wire::{Overhead, ProtocolError, Seal};

use crate::http::RequestHead;
use crate::tls::{JOINED, MAX_RECORD, RECORD_HEAD, record_head};

/// Maximum length of a chunk that passes unchanged, in bytes.
const MAX_RAW: usize = 1 << 20;

/// The sending codec of a connection.
///
/// The first record includes everything that must precede the first data: an HTTP head waits for
/// data, while the end of a TLS handshake is owed ([`Seal::must_send_head`]) and may be sent alone.
pub struct ObfsSeal {
    first: Option<FirstBytes>,
    framing: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Raw,
    /// TLS records; the number is the maximum into which a payload is split.
    Records(usize),
}

/// The bytes that precede the first data.
enum FirstBytes {
    /// A request head, which takes the first bytes into its URL.
    Request(Box<RequestHead>),
    /// A response head.
    Response(Vec<u8>),
    /// The end of a TLS handshake.
    End(Vec<u8>),
}

impl FirstBytes {
    fn head_len(&self) -> usize {
        match self {
            Self::Request(request) => request.seal_overhead(),
            Self::Response(bytes) | Self::End(bytes) => bytes.len(),
        }
    }
}

impl ObfsSeal {
    pub(crate) const fn new_raw() -> Self {
        Self {
            first: None,
            framing: Framing::Raw,
        }
    }

    pub(crate) fn with_request_head(request: RequestHead) -> Self {
        Self {
            first: Some(FirstBytes::Request(Box::new(request))),
            framing: Framing::Raw,
        }
    }

    pub(crate) const fn with_response_head(head: Vec<u8>) -> Self {
        Self {
            first: Some(FirstBytes::Response(head)),
            framing: Framing::Raw,
        }
    }

    pub(crate) const fn new_records() -> Self {
        Self {
            first: None,
            framing: Framing::Records(1),
        }
    }

    pub(crate) const fn records_after(end: Vec<u8>) -> Self {
        Self {
            first: Some(FirstBytes::End(end)),
            framing: Framing::Records(1),
        }
    }

    /// Seals several records at a time; see [`Codecs::with_joined_records`](crate::Codecs::with_joined_records).
    pub(crate) fn with_joined_records(mut self) -> Self {
        if let Framing::Records(count) = &mut self.framing {
            *count = JOINED;
        }
        self
    }

    /// True if bytes pass unchanged from now on.
    #[must_use]
    pub const fn is_raw(&self) -> bool {
        matches!((&self.first, self.framing), (None, Framing::Raw))
    }
}

impl Seal for ObfsSeal {
    fn overhead(&self) -> Overhead {
        let first = self.first.as_ref().map_or(0, FirstBytes::head_len);
        let (head, max) = match self.framing {
            Framing::Raw => (0, MAX_RAW),
            Framing::Records(count) => (count * RECORD_HEAD, count * MAX_RECORD),
        };
        Overhead {
            head: first + head,
            tail: 0,
            max_payload: max,
        }
    }

    fn has_steady_overhead(&self) -> bool {
        self.first.is_none()
    }

    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        check_overhead(self.overhead(), record, &payload)?;
        if payload.is_empty() && !self.must_send_head() {
            return Ok(payload);
        }
        let mut wire = payload.clone();
        if let Framing::Records(_) = self.framing
            && !payload.is_empty()
        {
            wire.start = split_into_records(record, &payload)?;
        }
        match self.first.take() {
            None => {}
            Some(FirstBytes::Request(request)) => wire = request.seal_first(record, wire)?,
            Some(FirstBytes::Response(head) | FirstBytes::End(head)) => {
                put_before(record, &mut wire, &head)?;
            }
        }
        Ok(wire)
    }

    fn must_send_head(&self) -> bool {
        matches!(self.first, Some(FirstBytes::End(_)))
    }
}

fn check_overhead(
    room: Overhead,
    record: &[u8],
    payload: &Range<usize>,
) -> Result<(), ProtocolError> {
    if payload.len() > room.max_payload {
        let what = "a record's payload";
        let limit = room.max_payload;
        return Err(ProtocolError::TooLong { what, limit });
    }
    let inside = payload.start <= payload.end && payload.end <= record.len();
    if !inside || payload.start < room.head {
        return Err(ProtocolError::NoRoom("a record's head"));
    }
    Ok(())
}

/// Splits a payload into records, all full except the last, and returns the start of the first.
fn split_into_records(record: &mut [u8], payload: &Range<usize>) -> Result<usize, ProtocolError> {
    let count = payload.len().div_ceil(MAX_RECORD);
    let start = payload.start.checked_sub(count * RECORD_HEAD);
    let start = start.ok_or(ProtocolError::NoRoom("a record's head"))?;
    let mut at = start;
    // From the left, so that each chunk moves into space that is already free. The last one stays
    // in place.
    for from in payload.clone().step_by(MAX_RECORD) {
        let piece = from..payload.end.min(from + MAX_RECORD);
        let mut data = at + RECORD_HEAD..at + RECORD_HEAD + piece.len();
        at = data.end;
        if data.start != piece.start {
            record.copy_within(piece, data.start);
        }
        let head = record_head(data.len());
        put_before(record, &mut data, &head)?;
    }
    Ok(start)
}

fn put_before(
    record: &mut [u8],
    wire: &mut Range<usize>,
    bytes: &[u8],
) -> Result<(), ProtocolError> {
    let no_room = ProtocolError::NoRoom("a record's head");
    let start = wire.start.checked_sub(bytes.len()).ok_or(no_room)?;
    let place = record.get_mut(start..wire.start).ok_or(no_room)?;
    place.copy_from_slice(bytes);
    wire.start = start;
    Ok(())
}

impl fmt::Debug for ObfsSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObfsSeal")
            .field("framing", &self.framing)
            .field("first", &self.first.is_some())
            .finish()
    }
}
