//! A server's obfuscation over arbitrary bytes: before it answers, it has consumed, altered and
//! sent nothing; and where there is a key, clients without it are not answered.

#![no_main]

use adit_fuzz::obfs_pair::{new_server_handshake, new_server_state, record_connection};
use adit_fuzz::{ActionScript, SplitInput, alter_byte};
use adit_obfs::{ObfsKind, ServerState, UnrecognizedPolicy};
use adit_wire::codec_laws::open_all;
use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError};
use libfuzzer_sys::fuzz_target;

/// The outcome of a connection.
#[derive(Debug, PartialEq, Eq)]
struct ServerOutcome {
    /// The data and the number of bytes that wait for more, if the handshake finished.
    opened: Result<Option<(Vec<u8>, usize)>, ProtocolError>,
    sent: Vec<u8>,
    answered: bool,
}

fn run_server(
    state: &ServerState,
    strangers: UnrecognizedPolicy,
    wire: &[u8],
    pieces: &[usize],
) -> ServerOutcome {
    let mut core = new_server_handshake(state);
    let (mut held, mut rest, mut sent) = (Vec::new(), wire, Vec::new());
    let mut sizes = pieces.iter().cycle();
    let mut eaten = 0;
    let codecs = loop {
        let mut rx = HandshakeInput::new(&mut held);
        let step = core.step(&mut rx, &mut HandshakeOutput::new(&mut sent));
        let (now, left) = (rx.consumed(), rx.bytes().len());
        held.drain(..now);
        eaten += now;
        if !core.is_answered() {
            assert!(
                eaten == 0 && sent.is_empty(),
                "bytes were consumed or sent before an answer"
            );
        }
        match step {
            Ok(HandshakeProgress::NeedMore { total }) => {
                assert!(total > left, "NeedMore must ask for more than there is");
                if rest.is_empty() {
                    break Ok(None);
                }
                while held.len() < total && !rest.is_empty() {
                    let piece = sizes.next().copied().unwrap_or(1);
                    let (now, later) = rest.split_at(rest.len().min(piece));
                    held.extend_from_slice(now);
                    rest = later;
                }
            }
            Ok(HandshakeProgress::Done(codecs)) => break Ok(Some(codecs)),
            Err(why) => break Err(why),
        }
    };
    held.extend_from_slice(rest);
    let answered = core.is_answered();
    if !answered {
        assert!(held == wire, "bytes were altered before an answer");
    }
    // The number of zeros after a checksum that belong to the head depends on what arrived with it.
    if state.kind() == ObfsKind::RandomHead && answered {
        let zeros = held.iter().take_while(|byte| **byte == 0).count();
        held.drain(..zeros);
    }
    let opened = codecs.and_then(|codecs| match codecs {
        Some(mut codecs) => open_all(&mut codecs.open, &held, pieces).map(Some),
        None => {
            let passed = core.handle_timeout().is_ok();
            assert_eq!(passed, strangers == UnrecognizedPolicy::PassOn && !answered);
            Ok(None)
        }
    });
    ServerOutcome {
        opened,
        sent,
        answered,
    }
}

/// Returns true if the server checks the byte at `place` of a genuine hello before it answers.
fn is_checked_byte(kind: ObfsKind, place: usize) -> bool {
    match kind {
        // Up to the session id; the rest of a hello has no tag.
        ObfsKind::TicketAuth | ObfsKind::TicketFastAuth => place < 76,
        // The random bytes.
        ObfsKind::GoQuiet => (11..43).contains(&place),
        _ => false,
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let kind = script.pick_one(&ObfsKind::ALL);
    let flags = script.read_u8();
    let strangers = match flags & 1 {
        0 => UnrecognizedPolicy::Refuse,
        _ => UnrecognizedPolicy::PassOn,
    };
    let keyed = kind.overhead() > 0;
    let hosts = if flags & 2 != 0 && !keyed {
        "a.com,b.com"
    } else {
        ""
    };
    let seed = u64::from(flags >> 5);
    let SplitInput { sizes, bytes } = SplitInput::new(script.take_rest());
    let met = |wire: &[u8]| {
        let sizes = sizes.clone();
        SplitInput { sizes, bytes: wire }.assert_split_independent(|wire, pieces| {
            let state = new_server_state(kind, strangers, hosts);
            run_server(&state, strangers, wire, pieces)
        })
    };
    let mode = (flags >> 2) % 3;
    if mode == 0 {
        let met = met(bytes);
        assert!(!(keyed && met.answered), "answered without a key");
        if !met.answered && strangers == UnrecognizedPolicy::PassOn {
            assert!(met.opened.is_ok(), "a stranger was not passed on");
        }
        return;
    }
    let mut script = ActionScript::new(bytes);
    let (place, flip) = (script.read_u16(), script.read_u8());
    let piece = usize::from(script.read_u16()).max(1);
    let data = [b"thirteen byte", script.take_rest()].concat();
    let transcript = record_connection(kind, seed, &data, piece.max(13));
    let whole = met(&transcript.request);
    assert_eq!(whole.opened, Ok(Some((data.clone(), 0))));
    assert!(whole.answered);
    let mut wire = transcript.request.clone();
    if mode == 1 {
        let at = alter_byte(&mut wire, place, flip);
        let bad = met(&wire);
        if is_checked_byte(kind, at) {
            assert!(!bad.answered, "an altered hello was answered");
        }
    } else {
        // A part of it, then arbitrary bytes.
        let at = usize::from(place) * wire.len() / 65_536;
        let noise = data.get(13..).unwrap_or_default();
        let _ = met(&[&wire[..at], noise].concat());
        // The recorded hello is sent again.
        let state = new_server_state(kind, strangers, hosts);
        let first = run_server(&state, strangers, &wire, &[usize::MAX]);
        assert_eq!(first, whole);
        if keyed {
            let again = run_server(&state, strangers, &wire, &[usize::MAX]);
            assert!(
                !again.answered && again.sent.is_empty(),
                "a replay was answered"
            );
        }
    }
});
