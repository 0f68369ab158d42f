//! Signatures: Ed25519, ECDSA on the NIST curves, RSA with PKCS#1 v1.5.
//!
//! Keys and signatures are the plain numbers of their standards (big-endian, fixed length); each protocol
//! adds its own encoding. AWS-LC signs; ECDSA's nonces and the blinding use AWS-LC's own generator.

mod bignum;
mod ecdsa;
mod ed25519;
mod rsa;

pub use ecdsa::{EcdsaKey, NistCurve, ecdsa_verify};
pub use ed25519::{Ed25519Key, ed25519_verify};
pub use rsa::{RsaHash, RsaKey, RsaParts, RsaPublic, generate_rsa_pkcs8};
