//! The packet protocol against itself, against golden packets of other implementations, and against
//! bad bytes.

mod compression;
mod golden;
mod hostile;
mod roundtrip;

use adit_crypto::Secret;

use super::{DirectionKeys, Opened, Opener, PayloadPosition, Sealer};
use crate::SshError;
use crate::algorithm::{Cipher, Compression, Mac};

/// A cipher, and a MAC if it needs one.
type Suite = (Cipher, Option<Mac>);

/// Returns every cipher with every MAC that it can be combined with.
fn suites() -> impl Iterator<Item = Suite> {
    Cipher::ALL.iter().flat_map(|&cipher| {
        let macs: Vec<_> = if cipher.is_aead() {
            vec![None]
        } else {
            Mac::ALL.iter().copied().map(Some).collect()
        };
        macs.into_iter().map(move |mac| (cipher, mac))
    })
}

/// Returns keys that differ in each part and with `salt`.
fn keys((cipher, mac): Suite, salt: u8, compression: Compression) -> DirectionKeys {
    let (key, iv) = cipher.key_iv_len();
    let mac_key = mac.map_or(0, |mac| mac.key_tag_len().0);
    let part = |len: usize, step: usize| {
        Secret::new(
            (0..len)
                .map(|i| (i * step) as u8 ^ salt)
                .collect::<Vec<_>>(),
        )
    };
    DirectionKeys {
        cipher,
        mac,
        compression,
        key: part(key, 3),
        iv: part(iv, 5),
        mac_key: part(mac_key, 7),
    }
}

/// Returns two ends with the same keys.
fn pair(suite: Suite, compression: Compression) -> (Sealer, Opener) {
    let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
    sealer.set_keys(keys(suite, 1, compression), false).unwrap();
    opener.set_keys(keys(suite, 1, compression), false).unwrap();
    (sealer, opener)
}

fn sealed(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    sealer.seal(payload, &mut out).unwrap();
    out
}

/// Opens one packet, which must be complete; returns its payload and length.
fn open_one(opener: &mut Opener, wire: &mut [u8]) -> Result<(Vec<u8>, usize), SshError> {
    match opener.open(wire)? {
        Opened::NeedMore { total } => panic!("{total} bytes required, {} present", wire.len()),
        Opened::Packet { consumed, payload } => {
            Ok((opener.payload(wire, &payload).to_vec(), consumed))
        }
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 7 + 1) as u8).collect()
}
