//! Cryptographic primitives for adit.
//!
//! No other crate depends on a cryptography library (except `adit-umac`, which is also used on its own and
//! depends on `aes`), so that a faster kernel or another provider changes this crate alone. Nothing here
//! reads a clock or a random generator: nonces, salts and keys are arguments.
//!
//! Start with [`AeadKey`] (records and packets), [`StreamKey`] (the stream ciphers of legacy Shadowsocks),
//! `new_packet` (KCP's datagrams) and [`Secret`] (everything that must not be printed). Keys and digests are
//! cleared on drop and compared in constant time.
//!
//! # Examples
//!
//! ```
//! use adit_crypto::{AeadKey, AeadKind};
//!
//! let key = AeadKey::new(AeadKind::ChaCha20Poly1305, &[7; 32])?;
//! let nonce = [0; 12]; // a counter in practice: never the same one twice
//! let mut message = *b"in place";
//! let tag = key.seal_in_place(&nonce, &mut message)?;
//! key.open_in_place(&nonce, &mut message, &tag)?;
//! assert_eq!(&message, b"in place");
//! # Ok::<(), adit_crypto::CryptoError>(())
//! ```

#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod aead;
mod bcrypt;
mod blake3_state;
mod block_header;
mod cbc;
mod chacha;
mod credential;
mod decision_log;
mod digest;
mod error;
mod hmac;
mod kdf;
mod key_agreement;
mod mac_batch;
mod md5_block;
mod modp_group;
mod nonce;
pub mod packet;
mod salsa;
mod secret;
mod sha2;
mod sign;
#[allow(
    unsafe_code,
    reason = "vector instructions; the module's docs state why they are sound"
)]
mod simd;
mod snapshot;
mod sntrup;
mod ssh_packet;
mod stream;

pub use aead::{AeadKey, AeadKind, TAG_LEN};
pub use bcrypt::bcrypt_pbkdf;
pub use block_header::HeaderCipher;
pub use cbc::{aes128_cbc_decrypt, aes128_cbc_encrypt, aes256_cbc_decrypt};
pub use credential::{CredentialDigest, CredentialHasher};
pub use decision_log::DecisionLog;
pub use digest::{SipKey, blake3_hash, sha256};
pub use error::CryptoError;
pub use hmac::{HmacKey, HmacKind, HmacTag, hmac_md5, hmac_sha1, hmac_sha256, md5, sha1};
pub use kdf::{KdfContext, evp_bytes_to_key, hkdf_sha1_subkey, pbkdf2_hmac_sha1};
pub use key_agreement::{
    AgreementCurve, EcdhKey, ML_KEM_CIPHERTEXT_LEN, ML_KEM_PUBLIC_LEN, MlKemKey, ml_kem_encapsulate,
};
pub use mac_batch::{HmacMd5Batch, MAC_LANES, SipBatch};
pub use modp_group::{DhGroup, DhKey, ModpSize};
pub use nonce::{Nonce, NonceCounter};
pub use secret::{Secret, ct_eq};
pub use sha2::{Sha2, Sha2Hasher};
pub use sign::{
    EcdsaKey, Ed25519Key, NistCurve, RsaHash, RsaKey, RsaParts, RsaPublic, ecdsa_verify,
    ed25519_verify, generate_rsa_pkcs8,
};
pub use simd::{CpuLevel, cpu_level, limit_cpu};
pub use snapshot::{SnapshotError, SnapshotFormat};
pub use sntrup::{SNTRUP_CIPHERTEXT_LEN, SNTRUP_PUBLIC_LEN, SntrupKey, sntrup_encapsulate};
pub use ssh_packet::{SshChaCha, SshGcm};
pub use stream::{Direction, Rc4, StreamCipher, StreamKey, StreamKind};

#[cfg(test)]
mod tests;
