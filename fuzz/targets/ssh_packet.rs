//! SSH packets under every cipher and MAC: raw bytes, genuine ones with one byte altered, and
//! authentic ones with an arbitrary zlib stream inside. Splitting does not change the outcome.

#![no_main]

use adit_crypto::Secret;
use adit_fuzz::{ActionScript, SplitInput, alter_byte};
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::{Cipher, Compression, Mac};
use adit_ssh_proto::packet::{
    DirectionKeys, MAX_PACKET_LENGTH, MAX_PAYLOAD, Opened, Opener, Sealer,
};
use libfuzzer_sys::fuzz_target;

/// The outcome of opening some bytes.
#[derive(Debug, PartialEq)]
struct Outcome {
    payloads: Vec<Vec<u8>>,
    /// The reason why it ended; `None` if it waits for more.
    error: Option<SshError>,
}

fn direction_keys(cipher: Cipher, mac: Mac, compression: Compression) -> DirectionKeys {
    let (key, iv) = cipher.key_iv_len();
    DirectionKeys {
        cipher,
        mac: Some(mac),
        compression,
        key: Secret::new(vec![7; key]),
        iv: Secret::new(vec![0xff; iv]),
        mac_key: Secret::new(vec![5; mac.key_tag_len().0]),
    }
}

/// Opens `wire` as it arrives in pieces of these sizes, the last of which is repeated.
fn open_packets(mut opener: Opener, wire: &[u8], sizes: &[usize]) -> Outcome {
    let mut payloads = Vec::new();
    let mut buffer = Vec::new();
    let mut rest = wire;
    let mut turn = 0;
    let error = loop {
        match opener.open(&mut buffer) {
            Ok(Opened::Packet { consumed, payload }) => {
                let payload = opener.payload(&buffer, &payload);
                assert!(!payload.is_empty() && payload.len() <= MAX_PAYLOAD);
                payloads.push(payload.to_vec());
                assert!(consumed > 4 && consumed <= buffer.len());
                buffer.drain(..consumed);
            }
            Ok(Opened::NeedMore { total }) => {
                assert!(total > buffer.len() && total <= MAX_PACKET_LENGTH + 68);
                if rest.is_empty() {
                    break None;
                }
                let size = sizes[turn % sizes.len()].clamp(1, rest.len());
                turn += 1;
                let (piece, behind) = rest.split_at(size);
                buffer.extend_from_slice(piece);
                rest = behind;
            }
            Err(why) => {
                assert_eq!(opener.open(&mut buffer), Err(why.clone()));
                break Some(why);
            }
        }
    };
    Outcome { payloads, error }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let (flags, place, flip) = (script.read_u8(), script.read_u16(), script.read_u8());
    let (cipher, mac) = (script.pick_one(Cipher::ALL), script.pick_one(Mac::ALL));
    let compression = match flags & 1 {
        0 => Compression::None,
        _ => Compression::Zlib,
    };
    let opener = || {
        let mut opener = Opener::new();
        if flags & 2 == 0 {
            opener
                .set_keys(direction_keys(cipher, mac, compression), true)
                .expect("keys");
        }
        opener
    };
    let pieces = SplitInput::new(script.take_rest());
    let opened = |wire: &[u8]| {
        let pieces = SplitInput {
            sizes: pieces.sizes.clone(),
            bytes: wire,
        };
        pieces.assert_split_independent(|wire, sizes| open_packets(opener(), wire, sizes))
    };
    if flags & 4 != 0 {
        let outcome = opened(pieces.bytes);
        assert!(
            flags & 2 != 0 || outcome.payloads.is_empty(),
            "opened without a key"
        );
        return;
    }
    // The sealer does not compress if the payloads are streams of the fuzzer's.
    let forged = flags & 8 != 0;
    let mut sealer = Sealer::new();
    if flags & 2 == 0 {
        let compression = if forged {
            Compression::None
        } else {
            compression
        };
        sealer
            .set_keys(direction_keys(cipher, mac, compression), true)
            .expect("keys");
    }
    let mut said = ActionScript::new(pieces.bytes);
    let (mut wire, mut payloads, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    while !said.is_empty() {
        let payload = said
            .read_bytes()
            .repeat(if flags & 16 == 0 { 1 } else { 100 });
        if payload.is_empty() {
            assert!(sealer.seal(&payload, &mut wire).is_err());
            continue;
        }
        sealer.seal(&payload, &mut wire).expect("bounded");
        ends.push(wire.len());
        payloads.push(payload);
    }
    let outcome = opened(&wire);
    let inflates = compression == Compression::Zlib && flags & 2 == 0;
    if forged && inflates {
        assert_ne!(outcome.error, Some(SshError::BadTag));
        return;
    }
    assert_eq!(
        outcome,
        Outcome {
            payloads,
            error: None
        }
    );
    if wire.is_empty() || flags & 2 != 0 {
        return;
    }
    let at = alter_byte(&mut wire, place, flip);
    let before = ends.iter().filter(|end| **end <= at).count();
    let outcome = open_packets(opener(), &wire, &[usize::MAX]);
    assert_eq!(
        outcome.payloads.len(),
        before,
        "an altered packet was opened"
    );
});
