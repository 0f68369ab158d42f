//! The check in front of a payload: CRC-32 or keyed HighwayHash-64, both little-endian.

use highway::{HighwayHash, HighwayHasher, Key};

use super::Check;
use crate::{Secret, ct_eq};

/// What the key of HighwayHash is derived under, by SHA-256.
const CONTEXT: &[u8] = b"kcp9 highwayhash key v1";

/// A check with its key.
pub(super) enum Checker {
    Crc32,
    HighwayHash(Secret<[u64; 4]>),
}

impl Checker {
    pub(super) fn new(check: Check, key: &[u8; 32]) -> Self {
        match check {
            Check::Crc32 => Self::Crc32,
            Check::HighwayHash => {
                let mut material = Secret::new([0; CONTEXT.len() + 32]);
                let (front, back) = material.expose_mut().split_at_mut(CONTEXT.len());
                front.copy_from_slice(CONTEXT);
                back.copy_from_slice(key);
                let derived = Secret::new(crate::sha256(material.expose()));
                Self::HighwayHash(Secret::new(words(derived.expose())))
            }
        }
    }

    pub(super) const fn check(&self) -> Check {
        match self {
            Self::Crc32 => Check::Crc32,
            Self::HighwayHash(_) => Check::HighwayHash,
        }
    }

    /// Writes the check of `nonce` and `payload` to `out`, which has [`Check::size`] bytes.
    pub(super) fn write(&self, nonce: &[u8], payload: &[u8], out: &mut [u8]) {
        match self {
            Self::Crc32 => out.copy_from_slice(&crc32fast::hash(payload).to_le_bytes()),
            Self::HighwayHash(key) => {
                out.copy_from_slice(&highway(key.expose(), &[nonce, payload]).to_le_bytes());
            }
        }
    }

    /// Whether `found` is the check of `nonce` and `payload`.
    pub(super) fn verify(&self, nonce: &[u8], payload: &[u8], found: &[u8]) -> bool {
        match self {
            Self::Crc32 => crc32fast::hash(payload).to_le_bytes() == *found,
            Self::HighwayHash(key) => ct_eq(
                &highway(key.expose(), &[nonce, payload]).to_le_bytes(),
                found,
            ),
        }
    }
}

fn highway(key: &[u64; 4], parts: &[&[u8]]) -> u64 {
    let mut hasher = HighwayHasher::new(Key(*key));
    for part in parts {
        hasher.append(part);
    }
    hasher.finalize64()
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let (chunks, _) = bytes.as_chunks();
    core::array::from_fn(|i| chunks.get(i).copied().map_or(0, u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{hex, vectors};

    #[test]
    fn golden_hashes() {
        let all = &vectors("kcpcrypt")["highwayhash"];
        let key = words(&hex(&all["key"]).try_into().unwrap());
        let cases = all["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 68);
        for case in cases {
            let len = case["len"].as_u64().unwrap();
            let byte = |j: u64| if len == 1400 { j * 7 + 1 } else { j } as u8;
            let data: Vec<u8> = (0..len).map(byte).collect();
            let expected = u64::from_str_radix(case["h64"].as_str().unwrap(), 16).unwrap();
            let (front, back) = data.split_at(data.len() / 3);
            assert_eq!(highway(&key, &[&data]), expected, "{len}");
            assert_eq!(highway(&key, &[front, back]), expected, "{len} in two");
        }
    }

    /// ITU-T V.42's check value, and nothing at all.
    #[test]
    fn crc_of_the_standard() {
        let checker = Checker::new(Check::Crc32, &[0; 32]);
        let mut out = [0; 4];
        checker.write(&[1; 16], b"123456789", &mut out);
        assert_eq!(u32::from_le_bytes(out), 0xcbf4_3926);
        assert!(checker.verify(&[2; 16], b"123456789", &out));
        assert!(!checker.verify(&[2; 16], b"123456788", &out));
        checker.write(&[1; 16], b"", &mut out);
        assert_eq!(out, [0; 4]);
    }
}
