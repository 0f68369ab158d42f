//! Tests of Salsa20 on every path against the crate, over lengths, positions and counters.

use salsa20::{
    Salsa20,
    cipher::{KeyIvInit, StreamCipher, StreamCipherSeek},
};

use super::TestRng;
use crate::{
    salsa,
    simd::{CpuPath, xor_salsa20, xor_salsa20_all},
};

fn by_crate(key: &[u8; 32], nonce: &[u8; 8], block: u32, len: usize) -> Vec<u8> {
    let mut cipher = Salsa20::new(key.into(), nonce.into());
    cipher.seek(u64::from(block) * 64);
    let mut keystream = vec![0; len];
    cipher.apply_keystream(&mut keystream);
    keystream
}

#[test]
fn every_length_equals_the_crate_on_every_path() {
    let mut rng = TestRng(11);
    let (key, nonce) = (rng.bytes(), rng.bytes());
    let state = salsa::initial_state(&key, &nonce);
    let expected = by_crate(&key, &nonce, 0, 2400);
    for path in CpuPath::available() {
        let mut memory = vec![0; 2600];
        for len in 0..2400 {
            let at = len % 67;
            memory.fill(0);
            xor_salsa20(path, &state, &mut memory[at..at + len]);
            assert!(memory[at..at + len] == expected[..len], "{path:?}, {len}");
            let outside = memory[..at].iter().chain(&memory[at + len..]);
            assert!(outside.into_iter().all(|byte| *byte == 0), "{path:?}");
        }
    }
}

#[test]
fn counters_up_to_the_end_and_around_it() {
    let mut rng = TestRng(12);
    let (key, nonce) = (rng.bytes(), rng.bytes());
    for back in [1, 2, 4, 7, 15, 16, 17, 33, 1 << 31] {
        let mut state = salsa::initial_state(&key, &nonce);
        state[8] = 0u32.wrapping_sub(back);
        let mut expected = by_crate(&key, &nonce, state[8], (back as usize).min(40) * 64);
        // Block 0 follows the last block: the caller handles the upper half.
        expected.extend(by_crate(&key, &nonce, 0, 2700));
        expected.truncate(2700);
        for path in CpuPath::available() {
            for len in [1, 100, 300, 700, 1024, 1400, 2048, 2700] {
                if back > 40 && len > 40 * 64 {
                    continue;
                }
                let mut buf = vec![0; len];
                xor_salsa20(path, &state, &mut buf);
                assert!(buf == expected[..len], "{path:?}: {back} before, {len}");
            }
        }
    }
}

#[test]
fn messages_side_by_side_are_as_each_alone() {
    let mut rng = TestRng(13);
    let key = rng.bytes();
    let base = salsa::initial_state(&key, &[0; 8]);
    for count in 0..20 {
        let mut messages: Vec<([u8; 8], Vec<u8>)> = (0..count)
            .map(|at| (rng.bytes(), vec![at; rng.below(3500)]))
            .collect();
        // An empty message, whole blocks, one byte more, all lanes once and twice, and datagrams.
        let lens = [0, 64, 65, 1024, 1025, 2048, 1392, 1392, 23];
        for ((_, bytes), len) in messages.iter_mut().zip(lens) {
            bytes.resize(len, 7);
        }
        let expected: Vec<Vec<u8>> = messages
            .iter()
            .map(|(nonce, bytes)| {
                let mut bytes = bytes.clone();
                xor_salsa20(
                    CpuPath::Portable,
                    &salsa::initial_state(&key, nonce),
                    &mut bytes,
                );
                bytes
            })
            .collect();
        for path in CpuPath::available() {
            let mut found = messages.clone();
            let all = found
                .iter_mut()
                .map(|(nonce, bytes)| (&*nonce, &mut bytes[..]));
            xor_salsa20_all(path, &base, all);
            let found: Vec<Vec<u8>> = found.into_iter().map(|(_, bytes)| bytes).collect();
            assert!(found == expected, "{path:?}, {count}");
        }
    }
}
