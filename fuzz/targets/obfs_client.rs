//! A client's obfuscation over arbitrary bytes from a server: raw, and genuine except for one byte.

#![no_main]

use adit_fuzz::obfs_pair::{new_client_state, record_connection};
use adit_fuzz::{ActionScript, NOW, SeededRng, SplitInput, alter_byte};
use adit_obfs::ObfsKind;
use adit_wire::codec_laws::{open_all, run_handshake};
use adit_wire::{HandshakeProgress, ProtocolError};
use libfuzzer_sys::fuzz_target;

/// The data, and the number of bytes that wait for more; `None` before the end of the handshake.
type ReadOutcome = Result<Option<(Vec<u8>, usize)>, ProtocolError>;

/// Returns the hello, and the result of the answer.
fn read_response(
    kind: ObfsKind,
    (seed, joined): (u64, bool),
    wire: &[u8],
    pieces: &[usize],
) -> (Vec<u8>, ReadOutcome) {
    let state = new_client_state(kind, seed);
    let mut core = state.new_handshake(NOW, &mut SeededRng(seed));
    match run_handshake(&mut core, wire, pieces) {
        Err((why, sent)) => (sent, Err(why)),
        Ok((HandshakeProgress::NeedMore { .. }, sent, _)) => (sent, Ok(None)),
        Ok((HandshakeProgress::Done(codecs), sent, held)) => {
            let mut codecs = if joined {
                codecs.with_joined_records()
            } else {
                codecs
            };
            let heard = open_all(&mut codecs.open, &held, pieces);
            (sent, heard.map(Some))
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let kind = script.pick_one(&ObfsKind::ALL);
    let flags = script.read_u8();
    let seed = u64::from(flags >> 4);
    let joined = flags & 2 != 0;
    let SplitInput { sizes, bytes } = SplitInput::new(script.take_rest());
    let heard = |wire: &[u8]| {
        // A head of random bytes has no end: it is everything that arrived first.
        let sizes = match kind {
            ObfsKind::RandomHead => vec![usize::MAX],
            _ => sizes.clone(),
        };
        SplitInput { sizes, bytes: wire }.assert_split_independent(|wire, pieces| {
            read_response(kind, (seed, joined), wire, pieces)
        })
    };
    let keyed = kind.overhead() > 0;
    if flags & 1 == 0 {
        let (_, heard) = heard(bytes);
        if kind == ObfsKind::TicketAuth {
            assert!(
                !matches!(heard, Ok(Some(_))),
                "an answer without a key was accepted"
            );
        }
        if kind == ObfsKind::TicketFastAuth
            && let Ok(Some((plain, _))) = heard
        {
            assert!(plain.is_empty(), "an answer without a key was accepted");
        }
        return;
    }
    let mut script = ActionScript::new(bytes);
    let (place, flip) = (script.read_u16(), script.read_u8());
    let piece = usize::from(script.read_u16()).max(13);
    let data = [b"thirteen byte", script.take_rest()].concat();
    let transcript = record_connection(kind, seed, &data, piece);
    let (hello, whole) = heard(&transcript.response);
    assert_eq!(hello, transcript.request[..transcript.hello_len]);
    if kind != ObfsKind::RandomHead {
        assert_eq!(whole, Ok(Some((data.clone(), 0))));
    }
    let mut wire = transcript.response.clone();
    let at = alter_byte(&mut wire, place, flip);
    let (_, bad) = heard(&wire);
    let tagged = matches!(kind, ObfsKind::TicketAuth | ObfsKind::TicketFastAuth);
    if tagged && at < transcript.flight_len {
        let silent = bad.is_err()
            || bad
                .as_ref()
                .is_ok_and(|heard| heard.as_ref().is_none_or(|(plain, _)| plain.is_empty()));
        assert!(silent, "an altered answer was accepted");
    } else if keyed
        && at >= transcript.flight_len
        && let Ok(Some((plain, _))) = bad
    {
        // Data has no tag; the records before the altered one remain valid.
        let before = (at - transcript.flight_len) / (piece + 5) * piece;
        assert!(plain.starts_with(&data[..before]));
    }
});
