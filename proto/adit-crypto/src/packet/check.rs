//! The check in front of a payload: CRC-32 or keyed HighwayHash-64, both little-endian.

use super::PacketCheck;
use crate::{
    Secret, ct_eq,
    simd::{CpuPath, Crc32, highway64},
};

/// The prefix of the SHA-256 input from which the key of HighwayHash is derived.
const CONTEXT: &[u8] = b"kcp9 highwayhash key v1";

/// The parts of a packet: nonce, check, payload.
pub(super) type PacketParts<'p> = (&'p [u8], &'p [u8], &'p [u8]);

/// A check with its key.
pub(super) enum KeyedCheck {
    Crc32(Crc32),
    HighwayHash(CpuPath, Secret<[u64; 4]>),
}

impl KeyedCheck {
    pub(super) fn new(path: CpuPath, check: PacketCheck, key: &[u8; 32]) -> Self {
        match check {
            PacketCheck::Crc32 => Self::Crc32(Crc32::new(path)),
            PacketCheck::HighwayHash => {
                let mut material = Secret::new([0; CONTEXT.len() + 32]);
                let (front, back) = material.expose_mut().split_at_mut(CONTEXT.len());
                front.copy_from_slice(CONTEXT);
                back.copy_from_slice(key);
                let derived = Secret::new(crate::sha256(material.expose()));
                Self::HighwayHash(path, Secret::new(to_words(derived.expose())))
            }
        }
    }

    pub(super) const fn check_kind(&self) -> PacketCheck {
        match self {
            Self::Crc32(_) => PacketCheck::Crc32,
            Self::HighwayHash(..) => PacketCheck::HighwayHash,
        }
    }

    /// Writes the check of `nonce` and `payload` to `out`, which has [`PacketCheck::byte_len`] bytes.
    pub(super) fn write_check(&self, nonce: &[u8], payload: &[u8], out: &mut [u8]) {
        match self {
            Self::Crc32(crc) => out.copy_from_slice(&crc.checksum(payload).to_le_bytes()),
            Self::HighwayHash(path, key) => {
                let [hash] = highway64(*path, key.expose(), [(nonce, payload)]);
                out.copy_from_slice(&hash.to_le_bytes());
            }
        }
    }

    /// Writes the checks of two packets, each in three parts: nonce, check and payload.
    pub(super) fn write_two(&self, packets: [(&[u8], &mut [u8], &[u8]); 2]) {
        let [(nonce, out, payload), (other_nonce, other_out, other)] = packets;
        match self {
            Self::Crc32(_) => {
                self.write_check(nonce, payload, out);
                self.write_check(other_nonce, other, other_out);
            }
            Self::HighwayHash(path, key) => {
                let messages = [(nonce, payload), (other_nonce, other)];
                let [first, second] = highway64(*path, key.expose(), messages);
                out.copy_from_slice(&first.to_le_bytes());
                other_out.copy_from_slice(&second.to_le_bytes());
            }
        }
    }

    /// Returns true if the check matches nonce and payload.
    pub(super) fn verify_check(&self, (nonce, found, payload): PacketParts<'_>) -> bool {
        match self {
            Self::Crc32(crc) => crc.checksum(payload).to_le_bytes() == *found,
            Self::HighwayHash(path, key) => {
                let [hash] = highway64(*path, key.expose(), [(nonce, payload)]);
                ct_eq(&hash.to_le_bytes(), found)
            }
        }
    }

    /// Like [`verify_check`](Self::verify_check), for two packets; a missing one does not match.
    pub(super) fn verify_two(&self, packets: [Option<PacketParts<'_>>; 2]) -> [bool; 2] {
        let (Self::HighwayHash(path, key), [Some(one), Some(other)]) = (self, packets) else {
            return packets.map(|pieces| pieces.is_some_and(|pieces| self.verify_check(pieces)));
        };
        let hashes = highway64(*path, key.expose(), [(one.0, one.2), (other.0, other.2)]);
        let [first, second] = hashes.map(u64::to_le_bytes);
        [ct_eq(&first, one.1), ct_eq(&second, other.1)]
    }
}

fn to_words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{hex, vectors};

    #[test]
    fn golden_hashes() {
        let all = &vectors("kcpcrypt")["highwayhash"];
        let key = to_words(&hex(&all["key"]).try_into().unwrap());
        let cases = all["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 68);
        for case in cases {
            let len = case["len"].as_u64().unwrap();
            let byte = |j: u64| if len == 1400 { j * 7 + 1 } else { j } as u8;
            let data: Vec<u8> = (0..len).map(byte).collect();
            let expected = u64::from_str_radix(case["h64"].as_str().unwrap(), 16).unwrap();
            for path in CpuPath::available() {
                for head in [
                    0,
                    16.min(data.len()),
                    32.min(data.len()),
                    data.len().min(32) / 3,
                ] {
                    let message = data.split_at(head);
                    let found = highway64(path, &key, [message]);
                    assert_eq!(found, [expected], "{path:?}, {len} after {head}");
                }
            }
        }
    }

    /// The check value of ITU-T V.42, and that of an empty message.
    #[test]
    fn crc_of_the_standard() {
        let checker = KeyedCheck::new(CpuPath::Portable, PacketCheck::Crc32, &[0; 32]);
        let mut out = [0; 4];
        checker.write_check(&[1; 16], b"123456789", &mut out);
        assert_eq!(u32::from_le_bytes(out), 0xcbf4_3926);
        assert!(checker.verify_check((&[2; 16], &out, b"123456789")));
        assert!(!checker.verify_check((&[2; 16], &out, b"123456788")));
        checker.write_check(&[1; 16], b"", &mut out);
        assert_eq!(out, [0; 4]);
    }
}
