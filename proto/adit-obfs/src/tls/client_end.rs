//! The client's end of the handshake: ChangeCipherSpec, Finished.

use adit_wire::{HandshakeProgress, ProtocolError, subslice};

use super::record::{CHANGE_CIPHER_SPEC, RECORD_HEAD, parse_record_head};
use super::tag::{TAG_LEN, Tagger};

/// Maximum length of a Finished that a server waits for, in bytes.
const MAX_FINISHED: usize = 255;

/// The records in front of a client's first data.
pub(crate) struct ClientEnd {
    pub(crate) salt: [u8; 22],
}

impl ClientEnd {
    pub(crate) fn encode(&self, tagger: &Tagger) -> Vec<u8> {
        let mut out = CHANGE_CIPHER_SPEC.to_vec();
        out.extend_from_slice(&[0x16, 3, 3, 0, 0x20]);
        out.extend_from_slice(&self.salt);
        let tag = tagger.compute_tag(&[&out]);
        out.extend_from_slice(&tag);
        out
    }
}

/// Finds the end of ChangeCipherSpec and Finished at the front of `wire`.
pub(crate) fn parse_end(wire: &[u8]) -> Result<HandshakeProgress<usize>, ProtocolError> {
    let malformed = ProtocolError::Malformed("TLS: the client's end of the handshake");
    let front = CHANGE_CIPHER_SPEC.iter().chain(&[0x16, 3, 3]);
    if wire.iter().zip(front).any(|(a, b)| a != b) {
        return Err(malformed);
    }
    let start = CHANGE_CIPHER_SPEC.len();
    let Some((_, len)) = parse_record_head(wire.get(start..).unwrap_or_default()) else {
        let total = start + RECORD_HEAD;
        return Ok(HandshakeProgress::NeedMore { total });
    };
    if !(TAG_LEN..=MAX_FINISHED).contains(&len) {
        return Err(malformed);
    }
    let total = start + RECORD_HEAD + len;
    if wire.len() < total {
        return Ok(HandshakeProgress::NeedMore { total });
    }
    Ok(HandshakeProgress::Done(total))
}

/// Reads and checks the end of the handshake at the front of `wire` and returns its length.
pub(crate) fn read_end(
    wire: &[u8],
    tagger: &Tagger,
) -> Result<HandshakeProgress<usize>, ProtocolError> {
    let step = parse_end(wire)?;
    if let HandshakeProgress::Done(len) = step {
        tagger.check_tag(subslice(wire, ..len))?;
    }
    Ok(step)
}
