//! The proof of the key in a hello's random field, valid for one period of twelve hours.

use adit_crypto::{CryptoError, HeaderCipher, Secret, ct_eq, sha256};
use adit_wire::{ProtocolError, UnixTime, array_prefix};

/// Length of a period in seconds.
const PERIOD: u64 = 12 * 3600;
/// Tolerance in seconds at a boundary, within which the neighboring period is accepted too: clocks
/// differ, and a handshake takes time.
const GRACE: u64 = 5 * 60;
/// Maximum time that a proof can be valid, in seconds, and for which it must be remembered.
pub(crate) const REMEMBER_SECS: u64 = PERIOD + 2 * GRACE;

/// Creates and checks proofs.
pub(crate) struct ProofKey {
    text: Secret<Vec<u8>>,
    cipher: HeaderCipher,
}

impl ProofKey {
    /// Creates a key; `text` is the key as written by the user.
    pub(crate) fn new(text: &[u8]) -> Result<Self, CryptoError> {
        let key = Secret::new(sha256(text));
        Ok(Self {
            text: text.to_vec().into(),
            cipher: HeaderCipher::new(key.expose())?,
        })
    }

    /// Returns the random field for `now`: `iv ‖ AES-256-CFB(iv, SHA-256(period ‖ key))`, which is
    /// one block.
    pub(crate) fn make_proof(&self, iv: [u8; 16], now: UnixTime) -> [u8; 32] {
        self.random_field(iv, now.0 / PERIOD)
    }

    fn random_field(&self, iv: [u8; 16], period: u64) -> [u8; 32] {
        let period = period.to_string();
        let goal = Secret::new([period.as_bytes(), self.text.expose()].concat());
        let goal = sha256(goal.expose());
        let mut block = iv;
        self.cipher.encrypt_block(&mut block);
        let mut field = [0; 32];
        let (front, back) = field.split_at_mut(16);
        front.copy_from_slice(&iv);
        for ((out, a), b) in back.iter_mut().zip(block).zip(goal) {
            *out = a ^ b;
        }
        field
    }

    /// Checks the random field of a hello received at `now`.
    pub(crate) fn check_proof(
        &self,
        random: &[u8; 32],
        now: UnixTime,
    ) -> Result<(), ProtocolError> {
        let iv = array_prefix(random);
        let periods = [
            now.0,
            now.0.saturating_sub(GRACE),
            now.0.saturating_add(GRACE),
        ];
        // All periods are tried, so that the time taken reveals nothing.
        let good = periods.map(|at| ct_eq(&self.random_field(iv, at / PERIOD), random));
        if good.contains(&true) {
            Ok(())
        } else {
            Err(ProtocolError::Unauthentic)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_some_grace() {
        let key = ProofKey::new(b"pass").unwrap();
        let field = key.make_proof([7; 16], UnixTime(10 * PERIOD));
        for (now, good) in [
            (10 * PERIOD - 301, false),
            (10 * PERIOD - 300, true),
            (10 * PERIOD, true),
            (11 * PERIOD + 299, true),
            (11 * PERIOD + 300, false),
        ] {
            assert_eq!(
                key.check_proof(&field, UnixTime(now)).is_ok(),
                good,
                "{now}"
            );
        }
        let other = ProofKey::new(b"past").unwrap();
        assert_eq!(
            other.check_proof(&field, UnixTime(10 * PERIOD)),
            Err(ProtocolError::Unauthentic)
        );
        assert!(key.check_proof(&[0; 32], UnixTime(u64::MAX)).is_err());
    }

    #[test]
    fn every_bit_counts() {
        let key = ProofKey::new(b"pass").unwrap();
        let field = key.make_proof([7; 16], UnixTime(1));
        for bit in 0..256 {
            let mut bad = field;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(key.check_proof(&bad, UnixTime(1)).is_err());
        }
    }
}
