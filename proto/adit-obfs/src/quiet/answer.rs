//! The messages after a hello: a server's three records and a client's two.

use adit_wire::{Entropy, HandshakeProgress, ProtocolError, subslice};

use crate::tls::{CHANGE_CIPHER_SPEC, RECORD_HEAD, parse_record_head};

/// The record head of a Finished with 40 random bytes.
const FINISHED: [u8; RECORD_HEAD] = [0x16, 3, 3, 0, 0x28];
/// The record head and the start of a ServerHello of 81 bytes.
const HELLO: [u8; 11] = [0x16, 3, 3, 0, 0x51, 2, 0, 0, 0x4d, 3, 3];
const HELLO_LEN: usize = RECORD_HEAD + 0x51;
/// Offset of the session id in a ServerHello.
const SESSION_OFFSET: usize = 11 + 32 + 1;
/// Maximum length of the answer that a client waits for, in bytes. Servers send 137.
const MAX_ANSWER: usize = 4096;

fn put_finished(out: &mut Vec<u8>, random: &[u8; 40]) {
    out.extend_from_slice(&CHANGE_CIPHER_SPEC);
    out.extend_from_slice(&FINISHED);
    out.extend_from_slice(random);
}

/// Returns the records in front of a client's first data.
pub(crate) fn client_end(random: &[u8; 40]) -> Vec<u8> {
    let mut out = Vec::with_capacity(51);
    put_finished(&mut out, random);
    out
}

/// A server's random numbers for its answer.
pub(crate) struct ServerAnswer {
    pub(crate) random: [u8; 32],
    pub(crate) finished: [u8; 40],
}

impl ServerAnswer {
    pub(crate) fn draw_random(entropy: &mut dyn Entropy) -> Self {
        let (mut random, mut finished) = ([0; 32], [0; 40]);
        entropy.fill(&mut random);
        entropy.fill(&mut finished);
        Self { random, finished }
    }

    /// Encodes the answer to a hello with this session id.
    pub(crate) fn encode(&self, session: &[u8; 32]) -> Vec<u8> {
        let mut out = HELLO.to_vec();
        out.extend_from_slice(&self.random);
        out.push(0x20);
        out.extend_from_slice(session);
        out.extend_from_slice(&[0xc0, 0x30, 0, 0, 5, 0xff, 1, 0, 1, 0]);
        put_finished(&mut out, &self.finished);
        out
    }
}

/// Reads the answer at the front of `wire` and returns its length.
///
/// GoQuiet itself checks nothing here. adit does, because a server that does not have our key shows
/// a real web server instead, whose records must not be taken for an answer.
pub(crate) fn read_answer(
    wire: &[u8],
    session: &[u8; 32],
) -> Result<HandshakeProgress<usize>, ProtocolError> {
    let other = ProtocolError::Refused("a web server answered: wrong key or clock");
    if wire.iter().zip(HELLO).any(|(a, b)| *a != b) {
        return Err(other);
    }
    if wire.len() < HELLO_LEN {
        return Ok(HandshakeProgress::NeedMore { total: HELLO_LEN });
    }
    if wire.get(SESSION_OFFSET..SESSION_OFFSET + 32) != Some(session) {
        return Err(other);
    }
    let mut at = HELLO_LEN;
    for kind in [[0x14, 3, 3], [0x16, 3, 3]] {
        let Some((head, len)) = parse_record_head(subslice(wire, at..)) else {
            let total = at + RECORD_HEAD;
            return Ok(HandshakeProgress::NeedMore { total });
        };
        let end = at + RECORD_HEAD + len;
        if head != kind || end > MAX_ANSWER {
            return Err(other);
        }
        if wire.len() < end {
            return Ok(HandshakeProgress::NeedMore { total: end });
        }
        at = end;
    }
    Ok(HandshakeProgress::Done(at))
}
