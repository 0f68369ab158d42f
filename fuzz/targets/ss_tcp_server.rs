//! A Shadowsocks server over streams that are raw, sealed around arbitrary content, or genuine
//! except for one byte; and over legacy methods, for which raw bytes are equivalent to sealed ones.

#![no_main]

use std::sync::Arc;

use adit_fuzz::forged_wire::{ForgedEdition, ForgedStream, SALT, legacy_key};
use adit_fuzz::{NOW, SplitInput, ZeroEntropy, split_flags};
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::{Key, RestartPolicy, SaltPool, Users};
use adit_wire::codec_laws::{open_all, run_handshake, seal_all};
use adit_wire::{FixedEntropy, HandshakeProgress, Open, ProtocolError, Target};
use libfuzzer_sys::fuzz_target;

/// The target, all plaintext, and whether the stream may end here.
type ServeOutcome = Result<Option<(Target, Vec<u8>, bool)>, ProtocolError>;

fn serve_stream(key: &Key, wire: &[u8], pieces: &[usize]) -> ServeOutcome {
    let salts = Arc::new(SaltPool::new([1; 16], NOW, RestartPolicy::Lenient));
    // Not the client's salt: a server refuses its own.
    let mut rng = FixedEntropy::new([7; 32]);
    let users = Users::with_single_key(key.clone());
    let mut server = ServerHandshake::new(&users, Arc::new(NOW), salts, &mut rng);
    let (step, sent, rest) = run_handshake(&mut server, wire, pieces).map_err(|(why, sent)| {
        assert!(sent.is_empty(), "a refusal is silent");
        why
    })?;
    assert!(sent.is_empty());
    let HandshakeProgress::Done(mut accepted) = step else {
        return Ok(None);
    };
    let (more, unread) = open_all(&mut accepted.open, &rest, pieces)?;
    let clean = accepted.open.is_at_boundary(unread);
    Ok(Some((
        accepted.target,
        [accepted.first, more].concat(),
        clean,
    )))
}

/// Returns a whole stream of our own client.
fn seal_stream(key: &Key, payload: &[u8], piece: usize) -> Vec<u8> {
    let target: Target = "example.test:443".parse().expect("a target");
    let codecs = client_codecs(
        &key.clone().into(),
        &target,
        Arc::new(NOW),
        &mut ZeroEntropy,
    );
    let (mut seal, _) = codecs.expect("a client");
    seal_all(&mut seal, payload, piece).expect("sealed")
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let edition = ForgedEdition::from_lowest_bit(flags);
    let key = legacy_key(flags).cloned().unwrap_or_else(|| edition.key());
    let SplitInput { sizes, bytes } = SplitInput::new(input);
    let split = |wire: &[u8]| {
        SplitInput {
            sizes: sizes.clone(),
            bytes: wire,
        }
        .assert_split_independent(|w, p| serve_stream(&key, w, p))
    };
    if legacy_key(flags).is_some() {
        let _ = split(bytes);
        let wire = seal_stream(&key, bytes, usize::from(flags).max(1));
        let whole = split(&wire).expect("genuine").expect("complete");
        assert_eq!((whole.1.as_slice(), whole.2), (bytes, true));
        return;
    }
    match (flags >> 1) % 4 {
        0 => {
            assert!(
                !matches!(split(bytes), Ok(Some(_))),
                "bytes without a key were accepted"
            );
        }
        1 => {
            // Arbitrary headers, sealed correctly.
            let mut stream = ForgedStream::new(edition, &SALT);
            match edition {
                ForgedEdition::Aead2022 => {
                    let (fixed, variable) = bytes.split_at(bytes.len().min(11));
                    stream.append_block(fixed);
                    stream.append_block(variable);
                }
                ForgedEdition::Aead => bytes.chunks(9).for_each(|chunk| stream.append_block(chunk)),
            }
            let _ = split(&stream.wire);
        }
        2 => {
            // A correct frame around arbitrary content.
            let mut stream = ForgedStream::new(edition, &SALT);
            let (most, content) = split_flags(bytes);
            let mut rest = content;
            if edition == ForgedEdition::Aead2022 {
                let (len, after) = content.split_at(content.len().min(1));
                let len = len
                    .first()
                    .map_or(0, |len| usize::from(*len))
                    .min(after.len());
                let (variable, after) = after.split_at(len);
                let stamp = NOW.0.to_be_bytes();
                let count = u16::try_from(variable.len())
                    .unwrap_or(u16::MAX)
                    .to_be_bytes();
                stream.append_block(&[&[0][..], &stamp, &count].concat());
                stream.append_block(variable);
                rest = after;
            }
            stream.append_chunks(rest, usize::from(most));
            let _ = split(&stream.wire);
        }
        _ => {
            let (place, payload) = split_flags(bytes);
            let (flip, payload) = split_flags(payload);
            let mut wire = seal_stream(&key, payload, usize::from(flip).max(1));
            let whole = split(&wire).expect("genuine").expect("complete");
            assert_eq!((whole.1.as_slice(), whole.2), (payload, true));
            let at = usize::from(place) * wire.len() / 256;
            wire[at] ^= flip.max(1);
            // Altered: an error, or a wait with the data before the altered place.
            if let Ok(Some((_, plain, clean))) = split(&wire) {
                assert!(payload.starts_with(&plain) && !clean && plain.len() < payload.len());
            }
        }
    }
});
