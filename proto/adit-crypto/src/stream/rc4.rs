//! RC4, as its users describe it (there is no standard; test vectors are in RFC 6229).

use core::fmt;

use zeroize::Zeroize;

use crate::CryptoError;

/// The state of an RC4 stream; encryption and decryption are the same. Cleared on drop.
///
/// RC4 is broken: its first bytes are strongly biased, and the rest less so. Only for protocols that
/// prescribe it.
#[derive(Clone)]
pub struct Rc4 {
    /// The permutation of bytes, in wider integers, since CPUs store and load half words faster.
    state: [u16; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    /// Starts the keystream of a key of 1 to 256 bytes.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, CryptoError> {
        if key.is_empty() || key.len() > 256 {
            return Err(CryptoError::KeyLength {
                expected: 16,
                found: key.len(),
            });
        }
        Ok(Self::schedule_key(key))
    }

    /// Starts the keystream of a key that is a hash.
    #[must_use]
    pub fn from_hash(key: &[u8; 16]) -> Self {
        Self::schedule_key(key)
    }

    fn schedule_key(key: &[u8]) -> Self {
        let mut state: [u16; 256] = core::array::from_fn(|i| i as u16);
        let mut j = 0;
        for (i, key) in (0..256).zip(key.iter().cycle()) {
            j = (j + usize::from(state[i]) + usize::from(*key)) % 256;
            state.swap(i, j);
        }
        Self { state, i: 0, j: 0 }
    }

    /// Adds the next bytes of the keystream to `data`.
    pub fn apply(&mut self, data: &mut [u8]) {
        let (mut i, mut j) = (self.i, self.j);
        let state = &mut self.state;
        let mut a = state[usize::from(i.wrapping_add(1))];
        let mut step = || {
            i = i.wrapping_add(1);
            j = j.wrapping_add(low_byte(a));
            // Load the next entry before the swap: a load after stores to unknown addresses would wait for
            // them. If the swap changes the entry, its value is in `a`.
            let next = i.wrapping_add(1);
            let loaded = state[usize::from(next)];
            let b = state[usize::from(j)];
            state[usize::from(i)] = b;
            state[usize::from(j)] = a;
            let out = low_byte(state[usize::from(low_byte(a.wrapping_add(b)))]);
            a = if next == j { a } else { loaded };
            out
        };
        // Eight steps for one access to the data.
        let (words, rest) = data.as_chunks_mut::<8>();
        for word in words {
            let key = [(); 8].map(|()| step());
            *word = (u64::from_le_bytes(*word) ^ u64::from_le_bytes(key)).to_le_bytes();
        }
        for byte in rest {
            *byte ^= step();
        }
        (self.i, self.j) = (i, j);
    }
}

/// Returns the byte of an entry, or the sum of two modulo 256.
const fn low_byte(entry: u16) -> u8 {
    entry.to_le_bytes()[0]
}

impl Drop for Rc4 {
    fn drop(&mut self) {
        self.state.zeroize();
        self.i.zeroize();
        self.j.zeroize();
    }
}

impl fmt::Debug for Rc4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rc4(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6229: keystream at offsets 0 and 4096 under 01 02 03 … of 5, 16 and 32 bytes.
    #[test]
    fn rfc_6229() {
        let key: [u8; 32] = core::array::from_fn(|i| i as u8 + 1);
        for (len, first, later) in [
            (5, [0xb2, 0x39, 0x63, 0x05], [0xff, 0x25, 0xb5, 0x89]),
            (16, [0x9a, 0xc7, 0xcc, 0x9a], [0xa3, 0x6a, 0x4c, 0x30]),
            (32, [0xea, 0xa6, 0xbd, 0x25], [0xf3, 0xe4, 0xc0, 0xa2]),
        ] {
            let mut out = [0; 4100];
            Rc4::new(&key[..len]).unwrap().apply(&mut out);
            assert_eq!((&out[..4], &out[4096..]), (&first[..], &later[..]), "{len}");
        }
    }

    #[test]
    fn keys_have_1_to_256_bytes() {
        for len in [0, 257] {
            assert!(Rc4::new(&vec![1; len]).is_err());
        }
        for len in [1, 256] {
            assert!(Rc4::new(&vec![1; len]).is_ok());
        }
    }
}
