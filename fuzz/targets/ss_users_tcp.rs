//! A server with users over streams that are raw, genuine except for one byte, or begun by one user
//! and continued by another: no user is ever taken for another one.

#![no_main]

use std::sync::Arc;

use adit_fuzz::users::{NAMES, World, target};
use adit_fuzz::{NOW, Pieces, Script, Zeros, alter, steer};
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::{RestartPolicy, SaltPool, UserId};
use adit_wire::codec_laws::{open_all, run_handshake, seal_all};
use adit_wire::{FixedEntropy, Open, ProtocolError, Step};
use libfuzzer_sys::fuzz_target;

/// An accepted stream.
#[derive(Debug, PartialEq, Eq)]
struct Served {
    user: Option<String>,
    plain: Vec<u8>,
    /// True if the stream may end here.
    clean: bool,
}

type Outcome = Result<Option<Served>, ProtocolError>;

fn serve(world: &World, hint: Option<UserId>, wire: &[u8], pieces: &[usize]) -> Outcome {
    let salts = Arc::new(SaltPool::new([1; 16], NOW, RestartPolicy::Lenient));
    // Not the client's salt: a server refuses its own.
    let mut chance = FixedEntropy::new([7; 32]);
    let server = ServerHandshake::new(world.users(), Arc::new(NOW), salts, &mut chance);
    let (step, sent, rest) =
        run_handshake(&mut server.with_hint(hint), wire, pieces).map_err(|(why, sent)| {
            assert!(sent.is_empty(), "a refusal is silent");
            why
        })?;
    assert!(sent.is_empty());
    let Step::Done(mut accepted) = step else {
        return Ok(None);
    };
    let (more, unread) = open_all(&mut accepted.open, &rest, pieces)?;
    assert_eq!(
        accepted.target,
        target(),
        "the server accepted another target"
    );
    Ok(Some(Served {
        user: accepted.user.map(|user| user.name().to_owned()),
        plain: [accepted.first, more].concat(),
        clean: accepted.open.is_at_boundary(unread),
    }))
}

/// Returns a user's whole stream. All streams have the same salt.
fn genuine(world: &World, who: usize, payload: &[u8], piece: usize) -> Vec<u8> {
    let codecs = client_codecs(&world.chains[who], &target(), Arc::new(NOW), &mut Zeros);
    let (mut seal, _) = codecs.expect("a client");
    seal_all(&mut seal, payload, piece).expect("sealed")
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = steer(input);
    let world = World::of(flags);
    let hint = world.users().iter().nth(usize::from(flags >> 6));
    let hint = hint.map(|user| user.id());
    let Pieces { sizes, bytes } = Pieces::new(input);
    let served = |wire: &[u8]| {
        let sizes = sizes.clone();
        let told = Pieces { sizes, bytes: wire }.same(|w, p| serve(world, hint, w, p));
        let unhinted = serve(world, None, wire, &[usize::MAX]);
        assert_eq!(told, unhinted, "a hint changes the outcome");
        told
    };
    let mode = (flags >> 1) % 3;
    if mode == 0 {
        let accepted = matches!(served(bytes), Ok(Some(_)));
        assert!(!accepted, "bytes without a key were accepted");
        return;
    }
    let mut script = Script::new(bytes);
    let (who, place, flip) = (script.below(3), script.short(), script.byte());
    let piece = usize::from(script.byte()).max(1);
    let payload = script.rest();
    let name = |who: usize| Some(NAMES[who].to_owned());
    let mut wire = genuine(world, who, payload, piece);
    let whole = Served {
        user: name(who),
        plain: payload.to_vec(),
        clean: true,
    };
    assert_eq!(served(&wire), Ok(Some(whole)));
    if mode == 1 {
        alter(&mut wire, place, flip);
    } else {
        // Another user continues where this one stopped.
        let other = genuine(world, (who + 1) % 3, payload, piece);
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
