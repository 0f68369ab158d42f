//! QPP as in kcptun: every byte of a stream goes through one of many permutations.
//!
//! ```text
//! pads:    P₀ … Pₙ₋₁, permutations of the 256 bytes that are drawn from the key
//! chance:  xoshiro256**, seeded from the key; each word r serves 8 bytes and chooses one pad
//! encrypt: c = P[b ⊕ r⟨i⟩]         decrypt: b = P⁻¹[c] ⊕ r⟨i⟩         r⟨i⟩: byte i of r
//! ```
//!
//! This obscures data and does not protect it: the generator is not cryptographic, every stream and
//! direction starts from the same seed, and nothing is authenticated. Kcptun's key reveals everything, and
//! secret bytes index the tables, so the running time depends on them. It exists for interoperability with
//! peers that have it enabled.

use core::fmt;
use core::num::NonZeroU32;

use zeroize::Zeroize;

use crate::{HeaderCipher, HmacKey, HmacKind, Secret, pbkdf2_hmac_sha1};

/// Size of a permutation, in bytes.
const PERMUTATION_LEN: usize = 256;
/// Number of bytes for one word of the generator.
const WORD_BYTES: u8 = 8;
/// Length of a key with the entropy of one permutation, in bytes: ⌊log₂ 256!⌋ bits.
pub const KEY_LEN: usize = 210;
/// Minimum number of pads without a warning of kcptun: the number of parts of 32 bytes in [`KEY_LEN`].
pub const MIN_PADS: u16 = 7;
/// Returns warnings about weak settings, like those of kcptun.
#[must_use]
pub fn weak_setting_warnings(key_len: usize, count: u16) -> Vec<String> {
    let mut found = Vec::new();
    if key_len < KEY_LEN {
        found.push(format!(
            "QPP: the key has {key_len} bytes; at least {KEY_LEN} are needed for the entropy of a permutation"
        ));
    }
    if count < MIN_PADS {
        found.push(format!(
            "QPP: {count} pads are too few; use at least {MIN_PADS}"
        ));
    }
    if count.is_multiple_of(2) {
        found.push(format!(
            "QPP: the number of pads ({count}) is even; use a prime number"
        ));
    }
    found
}

/// Number of key parts, which are used in turn.
const KEY_PARTS: usize = KEY_LEN / 32;

const LOOPS: NonZeroU32 = NonZeroU32::new(128).unwrap();
const PIECE_LOOPS: NonZeroU32 = NonZeroU32::new(1024).unwrap();
const SHUFFLE: &[u8] = b"___QUANTUM_PERMUTATION_PAD_SHUFFLE_SALT___";
const CHANCE: &[u8] = b"___QUANTUM_PERMUTATION_PAD_PRNG_SALT___";
const DERIVE: &[u8] = b"___QUANTUM_PERMUTATION_PAD_SEED_DERIVE___";
const SELECTOR: &[u8] = b"PERMUTATION_MATRIX_SELECTOR";

/// The permutations of a key, for all streams; cleared on drop.
pub struct PermutationPads {
    encrypting: Vec<u8>,
    decrypting: Vec<u8>,
    count: u16,
    start: PadPosition,
}

/// The position of one direction of a stream.
#[derive(Clone)]
pub struct PadPosition {
    state: [u64; 4],
    word: u64,
    /// Number of bytes of the word already used.
    used: u8,
}

impl PermutationPads {
    /// Creates the pads of kcptun's password; returns `None` for a count of 0. Takes 512 bytes and about
    /// 100 µs for each pad.
    #[must_use]
    pub fn new(key: &[u8], count: u16) -> Option<Self> {
        let bytes = usize::from(count) * PERMUTATION_LEN;
        let mut pads = Self {
            encrypting: vec![0; bytes],
            decrypting: vec![0; bytes],
            count,
            start: PadPosition::new(key),
        };
        let pieces = key_parts(key);
        let mut ciphers = Vec::with_capacity(KEY_PARTS);
        for piece in pieces.expose().chunks_exact(32) {
            let mut aes = Secret::new([0; 32]);
            pbkdf2_hmac_sha1(piece, SHUFFLE, LOOPS, aes.expose_mut());
            ciphers.push(HeaderCipher::new(aes.expose()).ok()?);
        }
        let there = pads.encrypting.chunks_exact_mut(PERMUTATION_LEN);
        let back = pads.decrypting.chunks_exact_mut(PERMUTATION_LEN);
        let pieces = pieces.expose().chunks_exact(32).cycle();
        for (number, ((there, back), piece)) in there.zip(back).zip(pieces).enumerate() {
            draw_permutation(piece, number, there, &ciphers);
            for (from, to) in there.iter().enumerate() {
                if let (Some(place), Ok(from)) = (back.get_mut(usize::from(*to)), from.try_into()) {
                    *place = from;
                }
            }
        }
        (count > 0).then_some(pads)
    }

    /// Returns the start position of a direction of a stream.
    #[must_use]
    pub fn start_position(&self) -> PadPosition {
        self.start.clone()
    }

    /// Encrypts the next bytes of a stream.
    pub fn encrypt_stream(&self, at: &mut PadPosition, bytes: &mut [u8]) {
        self.for_each_byte(at, &self.encrypting, bytes, |pad, byte, rng| {
            pad[usize::from(byte ^ rng)]
        });
    }

    /// Decrypts the next bytes of a stream.
    pub fn decrypt_stream(&self, at: &mut PadPosition, bytes: &mut [u8]) {
        self.for_each_byte(at, &self.decrypting, bytes, |pad, byte, rng| {
            pad[usize::from(byte)] ^ rng
        });
    }

    fn for_each_byte(
        &self,
        at: &mut PadPosition,
        pads: &[u8],
        bytes: &mut [u8],
        through: impl Fn(&[u8; PERMUTATION_LEN], u8, u8) -> u8,
    ) {
        let (pads, _) = pads.as_chunks::<PERMUTATION_LEN>();
        let pad = |word: u64| {
            let [low, high, ..] = word.to_le_bytes();
            pads.get(usize::from(u16::from_le_bytes([low, high]) % self.count))
        };
        let one = |at: &mut PadPosition, byte: &mut u8| {
            let rng = at.word.to_le_bytes();
            let rng = rng.get(usize::from(at.used)).copied();
            if let (Some(pad), Some(rng)) = (pad(at.word), rng) {
                *byte = through(pad, *byte, rng);
            }
            at.advance_byte();
        };
        let started = usize::from((WORD_BYTES - at.used) % WORD_BYTES);
        let (first, rest) = bytes.split_at_mut(started.min(bytes.len()));
        first.iter_mut().for_each(|byte| one(at, byte));
        let (words, last) = rest.as_chunks_mut::<8>();
        for eight in words {
            if let Some(pad) = pad(at.word) {
                for (byte, rng) in eight.iter_mut().zip(at.word.to_le_bytes()) {
                    *byte = through(pad, *byte, rng);
                }
            }
            at.next_word();
        }
        last.iter_mut().for_each(|byte| one(at, byte));
    }
}

impl PadPosition {
    fn new(key: &[u8]) -> Self {
        let tag = HmacKey::new(HmacKind::Sha256, key).tag(&[SELECTOR]);
        let mut seed = Secret::new([0; 32]);
        pbkdf2_hmac_sha1(tag.as_ref(), CHANCE, LOOPS, seed.expose_mut());
        let (words, _) = seed.expose().as_chunks::<8>();
        let mut state = [0; 4];
        for (to, from) in state.iter_mut().zip(words) {
            *to = u64::from_le_bytes(*from);
        }
        let (word, used) = (0, 0);
        let mut position = Self { state, word, used };
        position.next_word();
        position
    }

    /// Skips bytes of the stream.
    pub fn skip_bytes(&mut self, bytes: usize) {
        for _ in 0..bytes {
            self.advance_byte();
        }
    }

    const fn advance_byte(&mut self) {
        self.used += 1;
        if self.used >= WORD_BYTES {
            self.used = 0;
            self.next_word();
        }
    }

    /// Draws the next word of xoshiro256**.
    const fn next_word(&mut self) {
        let [a, b, c, d] = self.state;
        self.word = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
    }
}

/// Repeats or stretches the key to parts of 32 bytes.
fn key_parts(key: &[u8]) -> Secret<[u8; KEY_PARTS * 32]> {
    let mut short = Secret::new([0; 32]);
    let key = if key.len() < 32 {
        pbkdf2_hmac_sha1(key, DERIVE, LOOPS, short.expose_mut());
        &short.expose()[..]
    } else {
        key
    };
    let mut pieces = Secret::new([0; KEY_PARTS * 32]);
    let (all, _) = pieces.expose_mut().as_chunks_mut::<32>();
    let mut bytes = key.iter().copied().cycle();
    for piece in all {
        let mut raw = Secret::new([0; 32]);
        for (to, from) in raw.expose_mut().iter_mut().zip(&mut bytes) {
            *to = from;
        }
        pbkdf2_hmac_sha1(raw.expose(), DERIVE, PIECE_LOOPS, piece);
    }
    pieces
}

/// Draws the permutation of this number (Fisher–Yates, from the end).
fn draw_permutation(piece: &[u8], number: usize, pad: &mut [u8], ciphers: &[HeaderCipher]) {
    for (place, byte) in pad.iter_mut().zip(0..=u8::MAX) {
        *place = byte;
    }
    let name = format!("QPP_{number:b}");
    let tag = HmacKey::new(HmacKind::Sha256, piece).tag(&[name.as_bytes()]);
    let mut drawn = Secret::new([0; 32]);
    for (to, from) in drawn.expose_mut().iter_mut().zip(tag.as_ref()) {
        *to = *from;
    }
    for last in (1..pad.len()).rev() {
        // Only half of the number is drawn anew each time, as in the original.
        if let Some(block) = drawn.expose_mut().first_chunk_mut::<16>() {
            ciphers
                .iter()
                .for_each(|cipher| cipher.encrypt_block(block));
        }
        let fold = |rest, byte: &u8| (rest * 256 + usize::from(*byte)) % (last + 1);
        pad.swap(last, drawn.expose().iter().fold(0, fold));
    }
}

impl Drop for PermutationPads {
    fn drop(&mut self) {
        self.encrypting.zeroize();
        self.decrypting.zeroize();
    }
}

impl Drop for PadPosition {
    fn drop(&mut self) {
        self.state.zeroize();
        self.word.zeroize();
    }
}

impl PartialEq for PermutationPads {
    fn eq(&self, other: &Self) -> bool {
        self.encrypting == other.encrypting && self.start.state == other.start.state
    }
}

impl Eq for PermutationPads {}

impl fmt::Debug for PermutationPads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pads(*** of {})", self.count)
    }
}

impl fmt::Debug for PadPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Position(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256;

    fn text() -> Vec<u8> {
        (0..1000_usize).map(|i| (i * 7 % 256) as u8).collect()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn golden_streams_in_pieces() {
        let file = include_str!("../../vectors/qpp/qpp.json");
        let cases: serde_json::Value = serde_json::from_str(file).unwrap();
        for case in cases.as_array().unwrap() {
            let key = case["key"].as_str().unwrap().as_bytes();
            let count = case["count"].as_u64().unwrap().try_into().unwrap();
            let pads = PermutationPads::new(key, count).unwrap();
            let mut bytes = text();
            let (mut at, mut rest) = (pads.start_position(), &mut bytes[..]);
            for n in 0_usize.. {
                let (piece, behind) = rest.split_at_mut((n * n % 23 + 1).min(rest.len()));
                pads.encrypt_stream(&mut at, piece);
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            assert_eq!(hex(&bytes[..64]), case["first"].as_str().unwrap());
            assert_eq!(hex(&sha256(&bytes)), case["sha256"].as_str().unwrap());
            // In other parts, some of which are skipped.
            let (first, last) = bytes.split_at_mut(333);
            pads.decrypt_stream(&mut pads.start_position(), first);
            let mut at = pads.start_position();
            at.skip_bytes(333);
            pads.decrypt_stream(&mut at, last);
            assert!(bytes == text());
        }
    }

    #[test]
    fn no_pad_is_no_cipher() {
        assert!(PermutationPads::new(b"key", 0).is_none());
    }
}
