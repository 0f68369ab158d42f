//! The substitution table of the first Shadowsocks: each byte is substituted independently, always in the
//! same way. It conceals nothing from an observer of repeated data.

use zeroize::Zeroize;

/// Both directions of the table of a seed. Cleared on drop.
pub(super) struct SubstitutionTable {
    encrypt: [u8; 256],
    decrypt: [u8; 256],
}

impl SubstitutionTable {
    /// Sorts the identity 1,023 times: this takes some milliseconds, so do it once per key.
    pub(super) fn new(seed: &[u8]) -> Self {
        let digest = crate::md5(&[seed]);
        let (front, _) = digest.split_at(8);
        let a = front.iter().rfold(0, |a, byte| a << 8 | u64::from(*byte));
        let mut table: [u8; 256] = core::array::from_fn(|i| i as u8);
        let mut order = [0u32; 256];
        for round in 1..1024u16 {
            // A stable sort: equal entries keep their order. Keys are below 2^11.
            for ((order, place), entry) in order.iter_mut().zip(0..=255u8).zip(&table) {
                let key = a % u64::from(u16::from(*entry) + round);
                *order = (key as u32) << 16 | u32::from(place) << 8 | u32::from(*entry);
            }
            order.sort_unstable();
            for (entry, order) in table.iter_mut().zip(order) {
                *entry = order.to_le_bytes()[0];
            }
        }
        order.zeroize();
        let mut decrypt = [0; 256];
        for (plain, cipher) in (0..=255).zip(table) {
            decrypt[usize::from(cipher)] = plain;
        }
        Self {
            encrypt: table,
            decrypt,
        }
    }

    pub(super) fn encrypt(&self, data: &mut [u8]) {
        substitute_bytes(&self.encrypt, data);
    }

    pub(super) fn decrypt(&self, data: &mut [u8]) {
        substitute_bytes(&self.decrypt, data);
    }
}

impl Drop for SubstitutionTable {
    fn drop(&mut self) {
        self.encrypt.zeroize();
        self.decrypt.zeroize();
    }
}

fn substitute_bytes(table: &[u8; 256], data: &mut [u8]) {
    for byte in data {
        *byte = table[usize::from(*byte)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{hex, vectors};

    #[test]
    fn golden_tables() {
        let all = vectors("ciphers");
        for case in all["table"].as_array().unwrap() {
            let table = SubstitutionTable::new(&hex(&case["table_seed"]));
            assert_eq!(table.encrypt[..], hex(&case["table"]));
            let mut bytes: Vec<u8> = (0..=255).collect();
            table.encrypt(&mut bytes);
            table.decrypt(&mut bytes);
            assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        }
    }
}
