//! bcrypt_pbkdf: OpenSSH's key derivation from the passphrase of a key file.

use crate::CryptoError;

/// Fills `out` (1 to 1024 bytes) from a passphrase and a salt, neither of them empty.
///
/// This costs about 10 ms for each round and each 32 bytes, so limit the number of rounds that a file
/// specifies.
///
/// # Errors
/// [`CryptoError::InvalidKey`] if the passphrase, the salt or `out` is empty, `out` is too long, or
/// `rounds` is 0.
pub fn bcrypt_pbkdf(
    passphrase: &[u8],
    salt: &[u8],
    rounds: u32,
    out: &mut [u8],
) -> Result<(), CryptoError> {
    bcrypt_pbkdf::bcrypt_pbkdf(passphrase, salt, rounds, out).map_err(|_| CryptoError::InvalidKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first vector of OpenBSD's regress/lib/libutil/bcrypt_pbkdf.
    #[test]
    fn openbsd() {
        let mut out = [0; 32];
        bcrypt_pbkdf(b"password", b"salt", 4, &mut out).unwrap();
        assert_eq!(out[..8], [0x5b, 0xbf, 0x0c, 0xc2, 0x93, 0x58, 0x7f, 0x1c]);
        assert!(bcrypt_pbkdf(b"", b"salt", 4, &mut out).is_err());
        assert!(bcrypt_pbkdf(b"password", b"salt", 0, &mut out).is_err());
    }
}
