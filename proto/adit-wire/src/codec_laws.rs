//! Properties that every codec has, as functions for the tests and fuzz targets of all crates.
//!
//! * The plaintext does not depend on how the wire bytes are split.
//! * A flipped bit in an authenticated stream leads to an error or to a request for more, never to other
//!   plaintext.
//! * `NeedMore` always requests more than is available, so that a driver never spins.

use alloc::{vec, vec::Vec};

use crate::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Open, Opened, Overhead,
    ProtocolError, Seal,
};

/// Seals `payload` in records of at most `piece` bytes each and returns the wire bytes.
///
/// # Errors
/// The codec's error, or [`ProtocolError::NoRoom`] if it returns a range outside its record.
pub fn seal_all(
    seal: &mut dyn Seal,
    payload: &[u8],
    piece: usize,
) -> Result<Vec<u8>, ProtocolError> {
    let mut wire = Vec::new();
    let mut rest = payload;
    loop {
        let Overhead {
            head,
            tail,
            max_payload: max,
        } = seal.overhead();
        let (now, later) = rest.split_at(rest.len().min(piece.max(1)).min(max));
        if now.is_empty() && !seal.must_send_head() {
            return Ok(wire);
        }
        let mut record = vec![0xa5; head];
        record.extend_from_slice(now);
        record.resize(head + now.len() + tail, 0x5a);
        let range = seal.seal(&mut record, head..head + now.len())?;
        wire.extend_from_slice(
            record
                .get(range)
                .ok_or(ProtocolError::NoRoom("a sealed range"))?,
        );
        rest = later;
    }
}

/// Opens `wire` as if it arrived in parts of the given sizes, repeated cyclically.
///
/// Returns the plaintext and the number of wire bytes left when the input ended.
///
/// # Errors
/// The codec's error.
///
/// # Panics
/// Panics if the codec breaks the contract of [`Open`].
pub fn open_all(
    open: &mut dyn Open,
    wire: &[u8],
    pieces: &[usize],
) -> Result<(Vec<u8>, usize), ProtocolError> {
    let mut plain = Vec::new();
    let mut held: Vec<u8> = Vec::new();
    let mut rest = wire;
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at(rest.len().min((*piece).max(1)));
        held.extend_from_slice(now);
        rest = later;
        while !held.is_empty() {
            match open.open(&mut held)? {
                Opened::NeedMore { total } => {
                    assert!(
                        total > held.len(),
                        "NeedMore must request more than is available"
                    );
                    break;
                }
                Opened::End => return Ok((plain, held.len() + rest.len())),
                Opened::Record { consumed, payload } => {
                    assert!(consumed > 0 && payload.end <= consumed && consumed <= held.len());
                    plain.extend_from_slice(&held[payload]);
                    held.drain(..consumed);
                }
            }
        }
    }
    Ok((plain, held.len()))
}

/// The outcome of a handshake: its last step, its answers and the bytes left over.
pub type HandshakeOutcome<T> = (HandshakeProgress<T>, Vec<u8>, Vec<u8>);

/// The error of a failed handshake, and the answers to send before closing.
pub type HandshakeFailure<E> = (E, Vec<u8>);

/// Runs a handshake over `input` as if it arrived in parts of the given sizes, repeated cyclically.
///
/// # Errors
/// The handshake's error, with the answers that were to be sent before it.
///
/// # Panics
/// Panics if the core breaks the contract of [`Handshake`].
pub fn run_handshake<H: Handshake>(
    core: &mut H,
    input: &[u8],
    pieces: &[usize],
) -> Result<HandshakeOutcome<H::Output>, HandshakeFailure<H::Error>> {
    let (mut held, mut sent, mut rest) = (Vec::new(), Vec::new(), input);
    let mut pieces = pieces.iter().cycle();
    loop {
        let before = held.len();
        let mut rx = HandshakeInput::new(&mut held);
        let step = match core.step(&mut rx, &mut HandshakeOutput::new(&mut sent)) {
            Ok(step) => step,
            Err(why) => return Err((why, sent)),
        };
        let eaten = rx.consumed();
        held.drain(..eaten);
        match step {
            HandshakeProgress::NeedMore { total } => {
                assert!(
                    total > before - eaten,
                    "NeedMore must request more than is available"
                );
                if rest.is_empty() {
                    return Ok((HandshakeProgress::NeedMore { total }, sent, held));
                }
                while held.len() < total && !rest.is_empty() {
                    let n = pieces.next().copied().unwrap_or(1).max(1).min(rest.len());
                    let (now, later) = rest.split_at(n);
                    held.extend_from_slice(now);
                    rest = later;
                }
            }
            done @ HandshakeProgress::Done(_) => {
                held.extend_from_slice(rest);
                return Ok((done, sent, held));
            }
        }
    }
}
