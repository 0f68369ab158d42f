//! The sealing codec.

use core::fmt;
use core::ops::Range;

use adit_wire::{Broken, Room, Seal};

use crate::http::Request;
use crate::tls::{JOINED, MAX_RECORD, RECORD_HEAD, record_head};

/// Maximum length of a chunk that passes unchanged, in bytes.
const MAX_RAW: usize = 1 << 20;

/// The sending codec of a connection.
///
/// The first record includes everything that must precede the first data: an HTTP head waits for
/// data, while the end of a TLS handshake is owed ([`Seal::owes_head`]) and may be sent alone.
pub struct ObfsSeal {
    first: Option<First>,
    framing: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Raw,
    /// TLS records; the number is the maximum into which a payload is split.
    Records(usize),
}

/// The bytes that precede the first data.
enum First {
    /// A request head, which takes the first bytes into its URL.
    Request(Box<Request>),
    /// A response head.
    Response(Vec<u8>),
    /// The end of a TLS handshake.
    End(Vec<u8>),
}

impl First {
    fn room(&self) -> usize {
        match self {
            Self::Request(request) => request.room(),
            Self::Response(bytes) | Self::End(bytes) => bytes.len(),
        }
    }
}

impl ObfsSeal {
    pub(crate) const fn raw() -> Self {
        Self {
            first: None,
            framing: Framing::Raw,
        }
    }

    pub(crate) fn request(request: Request) -> Self {
        Self {
            first: Some(First::Request(Box::new(request))),
            framing: Framing::Raw,
        }
    }

    pub(crate) const fn response(head: Vec<u8>) -> Self {
        Self {
            first: Some(First::Response(head)),
            framing: Framing::Raw,
        }
    }

    pub(crate) const fn records() -> Self {
        Self {
            first: None,
            framing: Framing::Records(1),
        }
    }

    pub(crate) const fn records_after(end: Vec<u8>) -> Self {
        Self {
            first: Some(First::End(end)),
            framing: Framing::Records(1),
        }
    }

    /// Seals several records at a time; see [`Codecs::joined`](crate::Codecs::joined).
    pub(crate) fn joined(mut self) -> Self {
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
    fn room(&self) -> Room {
        let first = self.first.as_ref().map_or(0, First::room);
        let (head, max) = match self.framing {
            Framing::Raw => (0, MAX_RAW),
            Framing::Records(count) => (count * RECORD_HEAD, count * MAX_RECORD),
        };
        Room {
            head: first + head,
            tail: 0,
            max,
        }
    }

    fn steady(&self) -> bool {
        self.first.is_none()
    }

    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken> {
        check_room(self.room(), record, &payload)?;
        if payload.is_empty() && !self.owes_head() {
            return Ok(payload);
        }
        let mut wire = payload.clone();
        if let Framing::Records(_) = self.framing
            && !payload.is_empty()
        {
            wire.start = cut(record, &payload)?;
        }
        match self.first.take() {
            None => {}
            Some(First::Request(request)) => wire = request.seal(record, wire)?,
            Some(First::Response(head) | First::End(head)) => {
                put_before(record, &mut wire, &head)?;
            }
        }
        Ok(wire)
    }

    fn owes_head(&self) -> bool {
        matches!(self.first, Some(First::End(_)))
    }
}

fn check_room(room: Room, record: &[u8], payload: &Range<usize>) -> Result<(), Broken> {
    if payload.len() > room.max {
        let what = "a record's payload";
        let limit = room.max;
        return Err(Broken::TooLong { what, limit });
    }
    let inside = payload.start <= payload.end && payload.end <= record.len();
    if !inside || payload.start < room.head {
        return Err(Broken::NoRoom("a record's head"));
    }
    Ok(())
}

/// Splits a payload into records, all full except the last, and returns the start of the first.
fn cut(record: &mut [u8], payload: &Range<usize>) -> Result<usize, Broken> {
    let count = payload.len().div_ceil(MAX_RECORD);
    let start = payload.start.checked_sub(count * RECORD_HEAD);
    let start = start.ok_or(Broken::NoRoom("a record's head"))?;
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

fn put_before(record: &mut [u8], wire: &mut Range<usize>, bytes: &[u8]) -> Result<(), Broken> {
    let no_room = Broken::NoRoom("a record's head");
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
