//! Tests that every path and other libraries compute the same bytes, over lengths, positions and counters.

use chacha20::{
    ChaCha8, ChaCha12, ChaCha20,
    cipher::{KeyIvInit, StreamCipher, StreamCipherSeek},
};
use chacha20poly1305::{
    ChaCha8Poly1305, ChaCha12Poly1305, ChaCha20Poly1305, KeyInit, aead::AeadInOut,
};
use poly1305::{Poly1305, universal_hash::UniversalHash};

use super::{ALL_ROUNDS, ChaCha, Mac, TagInput, TestRng, key, wider};
use crate::{
    AeadKey, AeadKind, CryptoError, chacha,
    simd::{ChaChaRounds, CpuPath},
};

/// All lengths in 0..LENGTHS.
const LENGTHS: usize = 4201;

fn by_crate(rounds: ChaChaRounds, key: &[u8; 32], nonce: &[u8; 12], buf: &mut [u8]) -> [u8; 16] {
    fn seal<A: AeadInOut + KeyInit>(key: &[u8; 32], nonce: &[u8; 12], buf: &mut [u8]) -> [u8; 16] {
        A::new_from_slice(key)
            .unwrap()
            .encrypt_inout_detached(nonce[..].try_into().unwrap(), &[], buf.into())
            .unwrap()[..]
            .try_into()
            .unwrap()
    }
    match rounds {
        ChaChaRounds::EIGHT => seal::<ChaCha8Poly1305>(key, nonce, buf),
        ChaChaRounds::TWELVE => seal::<ChaCha12Poly1305>(key, nonce, buf),
        _ => seal::<ChaCha20Poly1305>(key, nonce, buf),
    }
}

#[test]
fn every_length_equals_the_crate_on_every_path() {
    let mut rng = TestRng(1);
    let mut plain = vec![0; LENGTHS];
    rng.fill(&mut plain);
    for rounds in ALL_ROUNDS {
        let (secret, nonce) = (rng.bytes(), rng.bytes());
        // Without optimisation: every length with 8 rounds, and a selection with the others.
        let fast = !cfg!(debug_assertions) || rounds == ChaChaRounds::EIGHT;
        for len in (0..LENGTHS).step_by(if fast { 1 } else { 13 }) {
            let mut expected = plain[..len].to_vec();
            let tag = by_crate(rounds, &secret, &nonce, &mut expected);
            for path in CpuPath::available() {
                let key = key(path, rounds, &secret);
                let mut buf = plain[..len].to_vec();
                let context = || format!("{path:?}, {rounds:?}, {len} bytes");
                assert_eq!(key.seal(&nonce, &mut buf), tag, "{}", context());
                assert!(buf == expected, "{}", context());
                // Opening takes the same path except for the order.
                if len % 17 == 0 || !cfg!(debug_assertions) {
                    assert!(key.open(&nonce, &mut buf, &tag), "{}", context());
                    assert!(buf == plain[..len], "{}", context());
                }
            }
        }
    }
}

/// Messages do not change at the length where a kind switches between this crate's code and AWS-LC's.
#[test]
fn every_kind_is_the_same_on_every_path() {
    let mut rng = TestRng(7);
    let (secret, nonce) = (rng.bytes::<32>(), rng.bytes::<24>());
    for kind in AeadKind::ALL {
        let on = |path| AeadKey::new_on_path(path, kind, &secret[..kind.key_len()]).unwrap();
        let nonce = &nonce[..kind.nonce_len()];
        for len in [0, 100, 1023, 1024, 1025, 4095, 4096, 4097] {
            let mut expected = vec![1; len];
            let portable = on(CpuPath::Portable);
            let tag = portable.seal_in_place(nonce, &mut expected).unwrap();
            for path in wider() {
                let mut buf = vec![1; len];
                let found = on(path).seal_in_place(nonce, &mut buf).unwrap();
                assert_eq!(found, tag, "{kind:?}, {path:?}, {len} bytes");
                assert!(buf == expected, "{kind:?}, {path:?}, {len} bytes");
                on(path).open_in_place(nonce, &mut buf, &tag).unwrap();
                assert!(buf.iter().all(|byte| *byte == 1));
                for short in 0..16 {
                    let cut = on(path).open_in_place(nonce, &mut expected.clone(), &tag[..short]);
                    assert_eq!(cut, Err(CryptoError::Unauthentic));
                }
            }
        }
    }
}

#[test]
fn every_alignment_and_nothing_outside() {
    let mut rng = TestRng(2);
    let (secret, nonce) = (rng.bytes(), rng.bytes());
    for len in [0, 1, 63, 64, 200, 333, 1400, 2085] {
        let mut expected = vec![0; len];
        let tag = by_crate(ChaChaRounds::EIGHT, &secret, &nonce, &mut expected);
        for path in CpuPath::available() {
            let key = key(path, ChaChaRounds::EIGHT, &secret);
            let mut memory = vec![0; len + 256];
            let base = memory.as_ptr().align_offset(64);
            for at in base..base + 64 {
                memory.fill(0);
                assert_eq!(key.seal(&nonce, &mut memory[at..at + len]), tag);
                assert!(memory[at..at + len] == expected, "{path:?} at {at}");
                let outside = memory[..at].iter().chain(&memory[at + len..]);
                assert!(outside.into_iter().all(|byte| *byte == 0), "{path:?}");
                assert!(key.open(&nonce, &mut memory[at..at + len], &tag));
                assert!(memory.iter().all(|byte| *byte == 0), "{path:?} at {at}");
            }
        }
    }
}

#[test]
fn counters_up_to_the_end_and_around_it() {
    fn keystream<C: KeyIvInit + StreamCipher + StreamCipherSeek>(
        key: &[u8; 32],
        nonce: &[u8; 12],
        block: u32,
        buf: &mut [u8],
    ) {
        let mut cipher = C::new_from_slices(key, nonce).unwrap();
        cipher.seek(u64::from(block) * 64);
        cipher.apply_keystream(buf);
    }
    let mut rng = TestRng(3);
    for rounds in ALL_ROUNDS {
        let (secret, nonce) = (rng.bytes(), rng.bytes());
        for back in [1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 40, 1 << 31, u32::MAX] {
            let mut state = chacha::initial_state(&secret, &nonce);
            state[12] = 0u32.wrapping_sub(back);
            // Up to the end all libraries agree. The crate keeps the last block back.
            let before = (back as usize - 1).min(48) * 64;
            let mut expected = vec![0; before];
            let by_crate = match rounds {
                ChaChaRounds::EIGHT => keystream::<ChaCha8>,
                ChaChaRounds::TWELVE => keystream::<ChaCha12>,
                _ => keystream::<ChaCha20>,
            };
            by_crate(&secret, &nonce, state[12], &mut expected);
            // Block 0 of the same nonce follows, without a carry into it.
            let mut portable = vec![0; 50 * 64 + 9];
            CpuPath::Portable.run_task(ChaCha(&state, rounds, &mut portable));
            assert!(
                portable[..before] == expected,
                "{back} blocks before the end"
            );
            if let Some(wrapped) = portable.get(back as usize * 64..) {
                let mut from_zero = vec![0; wrapped.len()];
                let start = chacha::initial_state(&secret, &nonce);
                CpuPath::Portable.run_task(ChaCha(&start, rounds, &mut from_zero));
                assert!(wrapped == from_zero);
            }
            for path in wider() {
                for len in [portable.len(), 40 * 64, 17 * 64, 700, 300, 100, 1] {
                    let mut buf = vec![0; len];
                    path.run_task(ChaCha(&state, rounds, &mut buf));
                    assert!(
                        buf == portable[..len],
                        "{path:?}: {back} before, {len} bytes"
                    );
                }
            }
        }
    }
}

/// Computes the tag with the crate.
fn tag_by_crate(key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
    let mut reference = Poly1305::new(key.into());
    if form == TagInput::Bare {
        return reference.compute_unpadded(data).into();
    }
    reference.update_padded(data);
    let mut lengths = [0; 16];
    lengths[8..].copy_from_slice(&(data.len() as u64).to_le_bytes());
    reference.update(&[lengths.into()]);
    reference.finalize().into()
}

#[test]
fn the_authenticator_at_its_edges() {
    let mut rng = TestRng(4);
    let mut keys: Vec<[u8; 32]> = vec![[0; 32], [0xff; 32], rng.bytes(), rng.bytes()];
    // r = 1, 2 and 4 beside the r with every bit that the clamp allows; pads that overflow.
    for low in [1, 2, 4] {
        let mut small = [0; 32];
        small[0] = low;
        keys.push(small);
        small[16..].fill(0xff);
        keys.push(small);
    }
    let mut fills = vec![[0u8; 16], [0xff; 16], rng.bytes()];
    for low in [0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe] {
        let mut near = [0xff; 16];
        near[0] = low;
        fills.push(near);
    }
    for secret in &keys {
        for fill in &fills {
            for len in (0..600).step_by(4).chain([1023, 1024, 1025, 4096]) {
                let data: Vec<u8> = fill.iter().copied().cycle().take(len).collect();
                for form in [TagInput::Aead, TagInput::Bare] {
                    let expected = tag_by_crate(secret, &data, form);
                    for path in CpuPath::available() {
                        let found = path.run_task(Mac(secret, &data, form));
                        let context = || format!("{path:?}, {form:?}, {len} bytes of {fill:x?}");
                        assert_eq!(found, expected, "{}", context());
                    }
                }
            }
        }
    }
}

/// With r = 1 the sum is that of the blocks. 4q + 3 of them contribute 3 · 2^128 and, reduced, 5q; the last
/// block of the data is chosen so that the total is 0 to 7 below 2^130: on both sides of p = 2^130 - 5,
/// where the last subtraction decides.
#[test]
fn sums_around_the_modulus() {
    let mut secret = [0; 32];
    secret[0] = 1;
    let mut pads = vec![secret];
    secret[16..].fill(0xff);
    pads.push(secret);
    for q in 0..40u16 {
        let mut data = vec![0; (usize::from(q) * 4 + 2) * 16];
        for short in 0..8 {
            let rest = ((data.len() as u128) << 64) + u128::from(5 * q) + short;
            let at = data.len() - 16;
            data[at..].copy_from_slice(&0u128.wrapping_sub(rest).to_le_bytes());
            for secret in &pads {
                let expected = tag_by_crate(secret, &data, TagInput::Aead);
                for path in CpuPath::available() {
                    let found = path.run_task(Mac(secret, &data, TagInput::Aead));
                    assert_eq!(found, expected, "{path:?}, {q}, {short} below 2^130");
                }
            }
        }
    }
}

#[test]
fn tampering_is_refused_and_leaves_the_ciphertext() {
    let mut rng = TestRng(5);
    let (secret, nonce) = (rng.bytes(), rng.bytes());
    for path in CpuPath::available() {
        let key = key(path, ChaChaRounds::EIGHT, &secret);
        for len in [0, 1, 100, 500, 1400] {
            let mut buf = vec![7; len];
            let tag = key.seal(&nonce, &mut buf);
            for bit in 0..128 {
                let (mut bad, mut copy) = (tag, buf.clone());
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(!key.open(&nonce, &mut copy, &bad), "{path:?}, bit {bit}");
                assert_eq!(copy, buf);
            }
            for bit in (0..len * 8).step_by(if len > 100 { 61 } else { 1 }) {
                let mut copy = buf.clone();
                copy[bit / 8] ^= 1 << (bit % 8);
                assert!(!key.open(&nonce, &mut copy, &tag), "{path:?}, bit {bit}");
            }
            let mut other = nonce;
            other[11] ^= 0x80;
            assert!(!key.open(&other, &mut buf.clone(), &tag));
            assert!(key.open(&nonce, &mut buf, &tag));
        }
    }
}

#[test]
fn a_million_random_messages_equal_the_portable_twin() {
    let mut rng = TestRng(6);
    let mut memory = vec![0; 2300];
    rng.fill(&mut memory);
    let (mut twin, mut ours) = (memory.clone(), memory.clone());
    for round in 0..1_000_000 {
        let (secret, nonce) = (rng.bytes(), rng.bytes());
        let rounds = ALL_ROUNDS[rng.below(3)];
        // Mostly short; one in 32 up to the whole.
        let bound = if rng.below(32) == 0 { 2200 } else { 90 };
        let (at, len) = (rng.below(64), rng.below(bound));
        let range = at..at + len;
        let tag = key(CpuPath::Portable, rounds, &secret).seal(&nonce, &mut twin[range.clone()]);
        for path in wider() {
            let key = key(path, rounds, &secret);
            let context = || format!("{path:?}, round {round}, {len} bytes at {at}");
            let buf = &mut ours[range.clone()];
            assert_eq!(key.seal(&nonce, buf), tag, "{}", context());
            assert!(*buf == twin[range.clone()], "{}", context());
            assert!(key.open(&nonce, buf, &tag), "{}", context());
            assert!(*buf == memory[range.clone()], "{}", context());
        }
        twin[range.clone()].copy_from_slice(&memory[range]);
    }
}
