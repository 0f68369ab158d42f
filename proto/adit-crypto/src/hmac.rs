//! HMAC (RFC 2104) with keys that authenticate many messages, and the plain hashes MD5 and SHA-1 for the
//! protocols that were built on them.

use core::fmt;

use adit_wire::{front, held};
use aws_lc_rs::hmac as lc;
use sha1::block_api::compress as compress_sha1;
use sha2::block_api::compress256;
use zeroize::{Zeroize, Zeroizing};

use crate::{ct_eq, md5_block};

/// The hash function of an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HmacKind {
    /// MD5: for protocols that prescribe it; as an HMAC it is not broken
    Md5,
    /// SHA-1: for protocols that prescribe it; as an HMAC it is not broken
    Sha1,
    /// SHA-256
    Sha256,
    /// SHA-512
    Sha512,
}

/// Block size of MD5, SHA-1 and SHA-256, in bytes.
const BLOCK: usize = 64;

/// An HMAC key, stored as the states of its two hashes after the padded key: this saves two blocks per
/// message. Nothing is allocated for a message.
pub struct HmacKey(State);

/// The states after the padded key. The compression functions are called directly: the contexts of
/// libraries cost as much as a short message itself (32 bytes under SHA-256: 372 ns with AWS-LC's, 150
/// without).
enum State {
    Md5(States<4>),
    Sha1(States<5>),
    Sha256(States<8>),
    Sha512(Box<lc::Key>),
}

struct States<const WORDS: usize> {
    inner: [u32; WORDS],
    outer: [u32; WORDS],
}

impl<const WORDS: usize> Drop for States<WORDS> {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// A hash function with blocks of 64 bytes.
trait Hash<const WORDS: usize> {
    /// The initial state.
    const START: [u32; WORDS];

    /// Compresses blocks into the state.
    fn compress(state: &mut [u32; WORDS], blocks: &[[u8; BLOCK]]);

    /// Returns a word of the state in the byte order of the hash.
    fn word(word: u32) -> [u8; 4];

    /// Returns the length in bits in the byte order of the hash.
    fn bits(bits: u64) -> [u8; 8];
}

struct Md5;
struct Sha1;
struct Sha256;

/// The initial state of RFC 1321, section 3.3; that of SHA-1 begins with it (RFC 3174, section 6.1).
const MD5_START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

impl Hash<4> for Md5 {
    const START: [u32; 4] = MD5_START;

    fn compress(state: &mut [u32; 4], blocks: &[[u8; BLOCK]]) {
        md5_block::compress(state, blocks);
    }

    fn word(word: u32) -> [u8; 4] {
        word.to_le_bytes()
    }

    fn bits(bits: u64) -> [u8; 8] {
        bits.to_le_bytes()
    }
}

impl Hash<5> for Sha1 {
    const START: [u32; 5] = {
        let [a, b, c, d] = MD5_START;
        [a, b, c, d, 0xc3d2_e1f0]
    };

    fn compress(state: &mut [u32; 5], blocks: &[[u8; BLOCK]]) {
        compress_sha1(state, blocks);
    }

    fn word(word: u32) -> [u8; 4] {
        word.to_be_bytes()
    }

    fn bits(bits: u64) -> [u8; 8] {
        bits.to_be_bytes()
    }
}

impl Hash<8> for Sha256 {
    /// FIPS 180-4, section 5.3.3.
    const START: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];

    fn compress(state: &mut [u32; 8], blocks: &[[u8; BLOCK]]) {
        compress256(state, blocks);
    }

    fn word(word: u32) -> [u8; 4] {
        word.to_be_bytes()
    }

    fn bits(bits: u64) -> [u8; 8] {
        bits.to_be_bytes()
    }
}

/// Returns the hash of `parts` after the `taken` bytes already in `state`.
fn hash<const WORDS: usize, H: Hash<WORDS>>(
    mut state: [u32; WORDS],
    taken: usize,
    parts: &[&[u8]],
) -> [u32; WORDS] {
    let mut block = [0; BLOCK];
    // Number of bytes in the block.
    let mut held = 0;
    let mut total = taken;
    for part in parts {
        total += part.len();
        let mut rest = *part;
        if held > 0 {
            let (now, later) = rest.split_at(rest.len().min(BLOCK - held));
            if let Some(place) = block.get_mut(held..held + now.len()) {
                place.copy_from_slice(now);
            }
            (held, rest) = (held + now.len(), later);
            if held < BLOCK {
                continue;
            }
            H::compress(&mut state, core::slice::from_ref(&block));
        }
        let (whole, last) = rest.as_chunks();
        if !whole.is_empty() {
            H::compress(&mut state, whole);
        }
        held = last.len();
        if let Some(place) = block.get_mut(..held) {
            place.copy_from_slice(last);
        }
    }
    // RFC 1321, section 3.1: a bit, zeros, and the length in bits.
    let (_, free) = block.split_at_mut(held);
    free.fill(0);
    if let Some(first) = free.first_mut() {
        *first = 0x80;
    }
    if free.len() < 9 {
        H::compress(&mut state, core::slice::from_ref(&block));
        block.fill(0);
    }
    // Lossless: no memory has 2^61 bytes.
    let bits = (total as u64).wrapping_mul(8);
    if let Some(place) = block.last_chunk_mut() {
        *place = H::bits(bits);
    }
    H::compress(&mut state, core::slice::from_ref(&block));
    state
}

/// Returns the words of a state as bytes.
fn bytes<const WORDS: usize, H: Hash<WORDS>>(state: &[u32; WORDS]) -> HmacTag {
    let mut tag = HmacTag {
        bytes: [0; 64],
        len: 4 * WORDS,
    };
    let places = tag.bytes.as_chunks_mut().0.iter_mut();
    for (place, word) in places.zip(state) {
        *place = H::word(*word);
    }
    tag
}

impl<const WORDS: usize> States<WORDS> {
    fn new<H: Hash<WORDS>>(key: &[u8]) -> Self {
        let mut block = Zeroizing::new([0; BLOCK]);
        match block.get_mut(..key.len()) {
            Some(place) => place.copy_from_slice(key),
            None => {
                let short = bytes::<WORDS, H>(&hash::<WORDS, H>(H::START, 0, &[key]));
                block.copy_from_slice(&short.bytes);
            }
        }
        let begun = |pad: u8| {
            let padded = Zeroizing::new(block.map(|b| b ^ pad));
            let mut state = H::START;
            H::compress(&mut state, core::slice::from_ref(&padded));
            state
        };
        Self {
            inner: begun(0x36),
            outer: begun(0x5c),
        }
    }

    fn tag<H: Hash<WORDS>>(&self, parts: &[&[u8]]) -> HmacTag {
        let inner = bytes::<WORDS, H>(&hash::<WORDS, H>(self.inner, BLOCK, parts));
        let outer = hash::<WORDS, H>(self.outer, BLOCK, &[inner.as_ref()]);
        bytes::<WORDS, H>(&outer)
    }
}

impl HmacKey {
    /// Creates a key of any length.
    #[must_use]
    pub fn new(kind: HmacKind, key: &[u8]) -> Self {
        Self(match kind {
            HmacKind::Md5 => State::Md5(States::new::<Md5>(key)),
            HmacKind::Sha1 => State::Sha1(States::new::<Sha1>(key)),
            HmacKind::Sha256 => State::Sha256(States::new::<Sha256>(key)),
            HmacKind::Sha512 => State::Sha512(Box::new(lc::Key::new(lc::HMAC_SHA512, key))),
        })
    }

    /// Returns the tag of the concatenated `parts`: 16, 20, 32 or 64 bytes.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> HmacTag {
        match &self.0 {
            State::Md5(states) => states.tag::<Md5>(parts),
            State::Sha1(states) => states.tag::<Sha1>(parts),
            State::Sha256(states) => states.tag::<Sha256>(parts),
            State::Sha512(key) => {
                let mut context = lc::Context::with_key(key);
                for part in parts {
                    context.update(part);
                }
                let mut tag = HmacTag {
                    bytes: [0; 64],
                    len: 64,
                };
                tag.bytes.copy_from_slice(context.sign().as_ref());
                tag
            }
        }
    }
}

/// Returns the MD5 hash (RFC 1321) of the concatenated `parts`. MD5 is broken: only for protocols that
/// prescribe it.
#[must_use]
pub fn md5(parts: &[&[u8]]) -> [u8; 16] {
    first(&bytes::<4, Md5>(&hash::<4, Md5>(Md5::START, 0, parts)))
}

/// Returns the SHA-1 hash (RFC 3174) of the concatenated `parts`. SHA-1 is broken: only for protocols that
/// prescribe it.
#[must_use]
pub fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    first(&bytes::<5, Sha1>(&hash::<5, Sha1>(Sha1::START, 0, parts)))
}

/// Returns the HMAC-MD5 (RFC 2104) of the concatenated `parts`. Compare tags with [`crate::ct_eq`].
#[must_use]
pub fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    first(&States::new::<Md5>(key).tag::<Md5>(parts))
}

/// Returns the HMAC-SHA1 (RFC 2104) of the concatenated `parts`. Compare tags with [`crate::ct_eq`].
#[must_use]
pub fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    first(&States::new::<Sha1>(key).tag::<Sha1>(parts))
}

/// Returns the HMAC-SHA256 (RFC 2104) of the concatenated `parts`. Compare tags with [`crate::ct_eq`].
#[must_use]
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    first(&States::new::<Sha256>(key).tag::<Sha256>(parts))
}

fn first<const N: usize>(tag: &HmacTag) -> [u8; N] {
    front(&tag.bytes)
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacKey(***)")
    }
}

/// An HMAC tag. Comparison takes a time that depends on the lengths alone.
#[derive(Debug, Clone, Copy)]
pub struct HmacTag {
    bytes: [u8; 64],
    len: usize,
}

impl AsRef<[u8]> for HmacTag {
    fn as_ref(&self) -> &[u8] {
        held(&self.bytes, ..self.len)
    }
}

impl PartialEq<[u8]> for HmacTag {
    fn eq(&self, other: &[u8]) -> bool {
        ct_eq(self.as_ref(), other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2202 and RFC 4231, test case 2.
    #[test]
    fn tags_of_the_standards() {
        let parts = [&b"what do ya want "[..], b"for nothing?"];
        for (kind, len, head) in [
            (HmacKind::Md5, 16, [0x75, 0x0c, 0x78, 0x3e]),
            (HmacKind::Sha1, 20, [0xef, 0xfc, 0xdf, 0x6a]),
            (HmacKind::Sha256, 32, [0x5b, 0xdc, 0xc1, 0x46]),
            (HmacKind::Sha512, 64, [0x16, 0x4b, 0x7a, 0x7b]),
        ] {
            let key = HmacKey::new(kind, b"Jefe");
            let tag = key.tag(&parts);
            assert_eq!((tag.as_ref().len(), &tag.as_ref()[..4]), (len, &head[..]));
            assert!(
                key.tag(&[&parts.concat()]) == *tag.as_ref(),
                "a key is kept"
            );
            let mut wrong = tag.as_ref().to_vec();
            wrong[len - 1] ^= 1;
            assert!(tag != *wrong && tag != wrong[..len - 1]);
        }
        // RFC 2202, test case 6.
        let long = [&b"Test Using Larger Than Block-Size Key - Hash Key First"[..]];
        assert_eq!(hmac_md5(&[0xaa; 80], &long)[..4], [0x6b, 0x1a, 0xb7, 0xfe]);
        assert_eq!(hmac_sha1(&[0xaa; 80], &long)[..4], [0xaa, 0x4a, 0xe5, 0xe1]);
    }

    /// RFC 1321, RFC 3174.
    #[test]
    fn digests_of_the_standards() {
        assert_eq!(md5(&[b"a", b"bc"])[..4], [0x90, 0x01, 0x50, 0x98]);
        assert_eq!(sha1(&[b"a", b"bc"])[..4], [0xa9, 0x99, 0x3e, 0x36]);
    }

    /// Tests all splits of a message around every block boundary.
    #[test]
    fn other_libraries_find_the_same() {
        use md5::Digest;

        use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, Key, sign};
        let text: Vec<u8> = (0..400u16).map(|n| (n % 251) as u8).collect();
        for key_len in [0, 1, 20, 63, 64, 65, 200] {
            let key = &text[..key_len];
            let (sha1, sha256) = (
                Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, key),
                Key::new(HMAC_SHA256, key),
            );
            for len in (0..140).chain(180..200).chain([256, 319, 320, 400]) {
                let whole = &text[..len];
                for cut in [0, 1, 55, 64, 100] {
                    let (a, b) = whole.split_at(cut.min(len));
                    let (b, c) = b.split_at(b.len() / 2);
                    let parts = [a, b, c];
                    assert_eq!(hmac_sha1(key, &parts), sign(&sha1, whole).as_ref());
                    assert_eq!(hmac_sha256(key, &parts), sign(&sha256, whole).as_ref());
                    assert_eq!(
                        hmac_md5(key, &parts),
                        hmac_md5(key, &[whole]),
                        "{len} {cut}"
                    );
                }
                // MD5 according to its definition.
                let md5 = |text: &[u8]| <[u8; 16]>::from(md5::Md5::digest(text));
                let mut block = [0; 64];
                match key_len {
                    0..=64 => block[..key_len].copy_from_slice(key),
                    _ => block[..16].copy_from_slice(&md5(key)),
                }
                let pad = |with: u8| block.map(|b| b ^ with);
                let inner = md5(&[&pad(0x36), whole].concat());
                let outer = md5(&[&pad(0x5c)[..], &inner].concat());
                assert_eq!(hmac_md5(key, &[whole]), outer, "{key_len} {len}");
            }
        }
    }
}
