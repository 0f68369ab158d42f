//! The pad (RFC 4418 section 3.3): AES of the nonce, which conceals the hash.
//!
//! One AES block contains four pads of UMAC-32 or two of UMAC-64: the lowest bits of the nonce
//! select the part, and the block is computed from the other bits.

use core::fmt;

use aes::Aes128Enc;
use aes::cipher::BlockCipherEncrypt;
use zeroize::Zeroize;

/// A number used once per key: 1 to 16 bytes, always of the same length.
///
/// Preferably a sequence number: [`From<u64>`] converts it to 8 bytes in big-endian order, as in
/// SSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nonce {
    /// The bytes, padded with zeros
    block: u128,
    /// Number of bits after the last byte
    shift: u32,
}

impl Nonce {
    /// Creates a nonce from 1 to 16 bytes.
    ///
    /// # Errors
    ///
    /// [`NonceLength`] if `octets` is empty or longer.
    #[inline]
    pub fn new(octets: &[u8]) -> Result<Self, NonceLength> {
        if let Ok(octets) = <[u8; 8]>::try_from(octets) {
            return Ok(Self::from(octets));
        }
        let mut block = [0; 16];
        let place = block.get_mut(..octets.len()).ok_or(NonceLength)?;
        place.copy_from_slice(octets);
        let behind = 16 - octets.len();
        let shift = u32::try_from(8 * behind).map_err(|_| NonceLength)?;
        if octets.is_empty() {
            return Err(NonceLength);
        }
        Ok(Self {
            block: u128::from_be_bytes(block),
            shift,
        })
    }

    /// Returns the block to encrypt with AES, and the first bit of the pad for a tag of `TAG` bytes
    /// in its output.
    #[inline(always)]
    fn block_and_offset<const TAG: usize>(self) -> (u128, u32) {
        let pads: u128 = match TAG {
            4 => 4,
            8 => 2,
            _ => return (self.block, 0),
        };
        let low = (pads - 1) << self.shift;
        let index = (self.block & low) >> self.shift;
        let begin = match (TAG, index) {
            (_, 0) => 0,
            (4, 1) => 32,
            (4, 3) => 96,
            _ => 64,
        };
        (self.block & !low, begin)
    }
}

impl From<u64> for Nonce {
    #[inline]
    fn from(number: u64) -> Self {
        Self {
            block: u128::from(number) << 64,
            shift: 64,
        }
    }
}

impl From<[u8; 8]> for Nonce {
    #[inline]
    fn from(octets: [u8; 8]) -> Self {
        Self::from(u64::from_be_bytes(octets))
    }
}

/// A nonce must have 1 to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NonceLength;

impl fmt::Display for NonceLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a nonce must have 1 to 16 bytes")
    }
}

impl core::error::Error for NonceLength {}

/// The last AES block and its input.
#[derive(Clone)]
pub(crate) struct CachedPad {
    nonce: u128,
    pads: u128,
    known: bool,
}

impl CachedPad {
    pub(crate) const fn empty() -> Self {
        Self {
            nonce: 0,
            pads: 0,
            known: false,
        }
    }
}

impl Drop for CachedPad {
    fn drop(&mut self) {
        self.pads.zeroize();
    }
}

/// Returns the pad for a tag of `TAG` bytes in the upper bits. Uses `last` if it matches, and
/// updates it otherwise.
#[inline(always)]
pub(crate) fn compute_pad<const TAG: usize>(
    aes: &Aes128Enc,
    nonce: Nonce,
    last: Option<&mut CachedPad>,
) -> u128 {
    let (nonce, begin) = nonce.block_and_offset::<TAG>();
    let pads = match last {
        Some(last) if TAG <= 8 => {
            if !last.known || last.nonce != nonce {
                *last = CachedPad {
                    nonce,
                    pads: encrypt_block(aes, nonce),
                    known: true,
                };
            }
            last.pads
        }
        _ => encrypt_block(aes, nonce),
    };
    pads << begin
}

#[inline(always)]
fn encrypt_block(aes: &Aes128Enc, block: u128) -> u128 {
    let mut octets = block.to_be_bytes();
    aes.encrypt_block((&mut octets).into());
    u128::from_be_bytes(octets)
}

#[cfg(test)]
mod tests {
    use aes::cipher::KeyInit;

    use super::*;

    #[test]
    fn nonces_have_1_to_16_octets() {
        assert_eq!(Nonce::new(&[]), Err(NonceLength));
        assert_eq!(Nonce::new(&[0; 17]), Err(NonceLength));
        for length in 1..=16 {
            assert!(Nonce::new(&[1; 16][..length]).is_ok());
        }
        assert_eq!(
            Nonce::new(&[0, 0, 0, 0, 0, 0, 1, 2]),
            Ok(Nonce::from(0x102))
        );
    }

    /// RFC 4418 section 3.3.1, byte by byte.
    fn by_the_rfc(aes: &Aes128Enc, octets: &[u8], tag: usize) -> [u8; 16] {
        let mut block = [0; 16];
        block[..octets.len()].copy_from_slice(octets);
        let mut begin = 0;
        if tag <= 8 {
            let last = &mut block[octets.len() - 1];
            let index = usize::from(*last) % (16 / tag);
            *last -= u8::try_from(index).unwrap();
            begin = index * tag;
        }
        aes.encrypt_block((&mut block).into());
        let mut out = [0; 16];
        out[..tag].copy_from_slice(&block[begin..begin + tag]);
        out
    }

    fn check<const TAG: usize>(octets: &[u8], last: &mut CachedPad) {
        let aes = Aes128Enc::new(&[7; 16].into());
        let nonce = Nonce::new(octets).unwrap();
        let right = by_the_rfc(&aes, octets, TAG);
        let cached = compute_pad::<TAG>(&aes, nonce, Some(last));
        assert_eq!(cached, compute_pad::<TAG>(&aes, nonce, None));
        assert_eq!(cached.to_be_bytes()[..TAG], right[..TAG], "{octets:?}");
    }

    #[test]
    fn pads_are_those_of_the_rfc() {
        for length in 1..=16 {
            let mut last = [const { CachedPad::empty() }; 4];
            // In order, with gaps, back, and the same again.
            for low in (0..=255).chain([3, 3, 8, 7, 6, 0, 2, 1]) {
                let mut octets = [0x5a; 16];
                octets[length - 1] = low;
                let octets = &octets[..length];
                let [a, b, c, d] = &mut last;
                check::<4>(octets, a);
                check::<8>(octets, b);
                check::<12>(octets, c);
                check::<16>(octets, d);
            }
        }
    }

    #[test]
    fn the_cache_begins_unknown() {
        let mut last = CachedPad::empty();
        check::<8>(&[0; 8], &mut last);
        assert!(last.known);
    }
}
