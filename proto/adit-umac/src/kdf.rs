//! Derivation of all keys from one (RFC 4418 section 3.2.1): AES in counter mode, numbered by use.

use core::fmt;

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use zeroize::{Zeroize, Zeroizing};

use crate::inner_product::InnerKey;
use crate::nh::NhKey;
use crate::poly::PolyKey;

/// Number of streams of the longest tag. The keys of a shorter tag are the first of these, since
/// the output of the KDF does not depend on its length.
pub(crate) const STREAMS: usize = 4;

/// Keys of the hash for all streams.
#[derive(Clone)]
pub(crate) struct HashKeys {
    pub(crate) nh: NhKey,
    pub(crate) poly: [PolyKey; STREAMS],
    pub(crate) inner: [InnerKey; STREAMS],
}

impl HashKeys {
    fn new(kdf: &KeyDerivation) -> Self {
        let [nh, poly, first, second] = [1, 2, 3, 4];
        let mut raw = Zeroizing::new([0; NhKey::OCTETS]);
        kdf.fill_key(nh, &mut *raw);
        let nh = NhKey::new(&raw);
        let mut raw = Zeroizing::new([[0; PolyKey::OCTETS]; STREAMS]);
        kdf.fill_key(poly, raw.as_flattened_mut());
        let poly = raw.each_ref().map(PolyKey::new);
        let mut raw = Zeroizing::new([[0; InnerKey::OCTETS]; STREAMS]);
        kdf.fill_key(first, raw.as_flattened_mut());
        let mut masks = Zeroizing::new([[0; 4]; STREAMS]);
        kdf.fill_key(second, masks.as_flattened_mut());
        let mut masks = masks.iter();
        let inner = raw.each_ref().map(|raw| {
            let mask = masks.next().map_or(0, |mask| u32::from_be_bytes(*mask));
            InnerKey::new(raw, mask)
        });
        Self { nh, poly, inner }
    }
}

impl Drop for HashKeys {
    fn drop(&mut self) {
        self.nh.zeroize();
        self.poly.iter_mut().for_each(Zeroize::zeroize);
        self.inner.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns the keys of the hash and the cipher for the pads.
pub(crate) fn expand_key(key: &[u8; 16]) -> (HashKeys, Aes128Enc) {
    let kdf = KeyDerivation(Aes128Enc::new(key.into()));
    let mut pad_key = Zeroizing::new([0; 16]);
    kdf.fill_key(0, &mut *pad_key);
    (HashKeys::new(&kdf), Aes128Enc::new((&*pad_key).into()))
}

struct KeyDerivation(Aes128Enc);

impl KeyDerivation {
    /// Fills `out` with KDF(K, index, length of `out`).
    fn fill_key(&self, index: u64, out: &mut [u8]) {
        let mut block = [0; 16];
        for (count, piece) in (1u64..).zip(out.chunks_mut(16)) {
            let counter = u128::from(index) << 64 | u128::from(count);
            self.0
                .encrypt_block_b2b((&counter.to_be_bytes()).into(), (&mut block).into());
            for (to, from) in piece.iter_mut().zip(block) {
                *to = from;
            }
        }
        block.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::tests::{hex, vectors};

    #[test]
    fn golden_subkeys() {
        let all = vectors();
        let golden = &all["intermediate"];
        let key: Vec<u8> = hex(&golden["key"]);
        let kdf = KeyDerivation(Aes128Enc::new(key.as_slice().try_into().unwrap()));
        for (index, name) in [
            (0, "kdf0_pdfkey"),
            (1, "kdf1_L1key_first64"),
            (2, "kdf2_L2key_96"),
            (3, "kdf3_L3key1_256"),
            (4, "kdf4_L3key2_16"),
        ] {
            let right = hex(&golden[name]);
            let mut out = vec![0; right.len()];
            kdf.fill_key(index, &mut out);
            assert_eq!(out, right, "{name}");
        }
        let mut out = [0; NhKey::OCTETS];
        kdf.fill_key(1, &mut out);
        assert_eq!(
            out[NhKey::OCTETS - 16..],
            hex(&golden["kdf1_L1key_1072_last16"])
        );
    }
}
