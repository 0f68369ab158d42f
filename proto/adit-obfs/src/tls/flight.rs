//! The server's flight: ServerHello, optionally a ticket, ChangeCipherSpec, Finished.

use adit_wire::{Entropy, HandshakeProgress, ProtocolError, UnixTime, subslice};

use super::be16;
use super::hello::stamped_random;
use super::record::{CHANGE_CIPHER_SPEC, RECORD_HEAD, parse_record_head};
use super::tag::{CLIENT_ID_LEN, TAG_LEN, Tagger};

/// Maximum length of a flight that a client waits for, in bytes. Servers send fewer than 600.
const MAX_FLIGHT: usize = 4096;
/// Length of handshake head, version and random field.
const HELLO_LEAST: usize = 4 + 2 + 32;

/// A server's random numbers for its answer.
pub(crate) struct ServerFlight {
    pub(crate) salt: [u8; 18],
    pub(crate) ticket: Option<Vec<u8>>,
    /// Random bytes in front of the tag: 22 or 30.
    pub(crate) finished: Vec<u8>,
}

impl ServerFlight {
    pub(crate) fn draw_random(entropy: &mut dyn Entropy) -> Self {
        let mut salt = [0; 18];
        entropy.fill(&mut salt);
        let ticket = (entropy.in_range(0, 8) == 0).then(|| {
            let mut ticket = vec![0; 64 + 2 * usize::from(entropy.in_range(0, 163))];
            entropy.fill(&mut ticket);
            ticket
        });
        let mut finished = vec![0; 22 + 8 * usize::from(entropy.in_range(0, 1))];
        entropy.fill(&mut finished);
        Self {
            salt,
            ticket,
            finished,
        }
    }

    /// Encodes the complete flight.
    pub(crate) fn encode(&self, tagger: &Tagger, now: UnixTime) -> Vec<u8> {
        let mut out = vec![0x16, 3, 3, 0, 0x51, 2, 0, 0, 0x4d, 3, 3];
        out.extend_from_slice(&stamped_random(tagger, now, &self.salt));
        out.push(0x20);
        out.extend_from_slice(tagger.client_id());
        out.extend_from_slice(&[0xc0, 0x2f, 0, 0, 5, 0xff, 1, 0, 1, 0]);
        if let Some(ticket) = &self.ticket {
            out.extend_from_slice(&[0x16, 3, 3]);
            out.extend_from_slice(&be16(ticket.len() + 4));
            out.extend_from_slice(&[4, 0]);
            out.extend_from_slice(&be16(ticket.len()));
            out.extend_from_slice(ticket);
        }
        out.extend_from_slice(&CHANGE_CIPHER_SPEC);
        out.extend_from_slice(&[0x16, 3, 3]);
        out.extend_from_slice(&be16(self.finished.len() + TAG_LEN));
        out.extend_from_slice(&self.finished);
        let tag = tagger.compute_tag(&[&out]);
        out.extend_from_slice(&tag);
        out
    }
}

/// Reads and checks the flight at the front of `wire` and returns its length.
pub(crate) fn read_flight(
    wire: &[u8],
    tagger: &Tagger,
) -> Result<HandshakeProgress<usize>, ProtocolError> {
    let (mut at, mut changed) = (0, false);
    loop {
        let rest = subslice(wire, at..);
        let Some((head, len)) = parse_record_head(rest) else {
            let total = at + RECORD_HEAD;
            return Ok(HandshakeProgress::NeedMore { total });
        };
        match head {
            [0x16, 3, 3] => {}
            [0x14, 3, 3] if at > 0 => changed = true,
            [0x15, 3, _] => return Err(ProtocolError::Refused("a TLS alert")),
            _ => return Err(ProtocolError::Malformed("TLS: not a server's handshake")),
        }
        let end = at + RECORD_HEAD + len;
        if end > MAX_FLIGHT {
            let what = "the TLS handshake";
            let limit = MAX_FLIGHT;
            return Err(ProtocolError::TooLong { what, limit });
        }
        if wire.len() < end {
            return Ok(HandshakeProgress::NeedMore { total: end });
        }
        let body = subslice(wire, at + RECORD_HEAD..end);
        if at == 0 {
            check_hello(body, tagger)?;
        } else if changed && head == [0x16, 3, 3] {
            if len < TAG_LEN {
                return Err(ProtocolError::Malformed("TLS Finished"));
            }
            tagger.check_tag(subslice(wire, ..end))?;
            return Ok(HandshakeProgress::Done(end));
        }
        at = end;
    }
}

/// Checks the tag in a ServerHello. A real TLS server's hello has none: then the key is wrong, or
/// the peer is not an obfs server.
fn check_hello(body: &[u8], tagger: &Tagger) -> Result<(), ProtocolError> {
    let start = [2, 0];
    let field = body.get(HELLO_LEAST - CLIENT_ID_LEN..HELLO_LEAST);
    match field {
        Some(field) if body.starts_with(&start) => tagger.check_tag(field),
        _ => Err(ProtocolError::Malformed("ServerHello")),
    }
}
