//! A server with users over streams that are raw, genuine except for one byte, or begun by one user
//! and continued by another: no user is ever taken for another one.

#![no_main]

use std::sync::Arc;

use adit_fuzz::user_fixture::{USER_NAMES, UserFixture, test_target};
use adit_fuzz::{ActionScript, NOW, SplitInput, ZeroEntropy, alter_byte, split_flags};
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::{RestartPolicy, SaltPool, UserId};
use adit_wire::codec_laws::{open_all, run_handshake, seal_all};
use adit_wire::{FixedEntropy, HandshakeProgress, Open, ProtocolError};
use libfuzzer_sys::fuzz_target;

/// An accepted stream.
#[derive(Debug, PartialEq, Eq)]
struct AcceptedStream {
    user: Option<String>,
    plain: Vec<u8>,
    /// True if the stream may end here.
    clean: bool,
}

type Outcome = Result<Option<AcceptedStream>, ProtocolError>;

fn serve_stream(
    fixture: &UserFixture,
    hint: Option<UserId>,
    wire: &[u8],
    pieces: &[usize],
) -> Outcome {
    let salts = Arc::new(SaltPool::new([1; 16], NOW, RestartPolicy::Lenient));
    // Not the client's salt: a server refuses its own.
    let mut rng = FixedEntropy::new([7; 32]);
    let server = ServerHandshake::new(fixture.all_users(), Arc::new(NOW), salts, &mut rng);
    let (step, sent, rest) =
        run_handshake(&mut server.with_hint(hint), wire, pieces).map_err(|(why, sent)| {
            assert!(sent.is_empty(), "a refusal is silent");
            why
        })?;
    assert!(sent.is_empty());
    let HandshakeProgress::Done(mut accepted) = step else {
        return Ok(None);
    };
    let (more, unread) = open_all(&mut accepted.open, &rest, pieces)?;
    assert_eq!(
        accepted.target,
        test_target(),
        "the server accepted another target"
    );
    Ok(Some(AcceptedStream {
        user: accepted.user.map(|user| user.name().to_owned()),
        plain: [accepted.first, more].concat(),
        clean: accepted.open.is_at_boundary(unread),
    }))
}

/// Returns a user's whole stream. All streams have the same salt.
fn seal_stream(fixture: &UserFixture, who: usize, payload: &[u8], piece: usize) -> Vec<u8> {
    let codecs = client_codecs(
        &fixture.chains[who],
        &test_target(),
        Arc::new(NOW),
        &mut ZeroEntropy,
    );
    let (mut seal, _) = codecs.expect("a client");
    seal_all(&mut seal, payload, piece).expect("sealed")
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let fixture = UserFixture::from_lowest_bit(flags);
    let hint = fixture.all_users().iter().nth(usize::from(flags >> 6));
    let hint = hint.map(|user| user.id());
    let SplitInput { sizes, bytes } = SplitInput::new(input);
    let served = |wire: &[u8]| {
        let sizes = sizes.clone();
        let told = SplitInput { sizes, bytes: wire }
            .assert_split_independent(|w, p| serve_stream(fixture, hint, w, p));
        let unhinted = serve_stream(fixture, None, wire, &[usize::MAX]);
        assert_eq!(told, unhinted, "a hint changes the outcome");
        told
    };
    let mode = (flags >> 1) % 3;
    if mode == 0 {
        let accepted = matches!(served(bytes), Ok(Some(_)));
        assert!(!accepted, "bytes without a key were accepted");
        return;
    }
    let mut script = ActionScript::new(bytes);
    let (who, place, flip) = (script.read_below(3), script.read_u16(), script.read_u8());
    let piece = usize::from(script.read_u8()).max(1);
    let payload = script.take_rest();
    let name = |who: usize| Some(USER_NAMES[who].to_owned());
    let mut wire = seal_stream(fixture, who, payload, piece);
    let whole = AcceptedStream {
        user: name(who),
        plain: payload.to_vec(),
        clean: true,
    };
    assert_eq!(served(&wire), Ok(Some(whole)));
    if mode == 1 {
        alter_byte(&mut wire, place, flip);
    } else {
        // Another user continues where this one stopped.
        let other = seal_stream(fixture, (who + 1) % 3, payload, piece);
        let at = usize::from(place) * wire.len() / 65_536;
        let spliced = [&wire[..at], &other[at..]].concat();
        if spliced == wire || spliced == other {
            return;
        }
        wire = spliced;
    }
    // An error, or a wait with the data before the altered place.
    if let Ok(Some(told)) = served(&wire) {
        assert_eq!(told.user, name(who), "taken for another user");
        let shorter = told.plain.len() < payload.len();
        assert!(payload.starts_with(&told.plain) && !told.clean && shorter);
    }
});
