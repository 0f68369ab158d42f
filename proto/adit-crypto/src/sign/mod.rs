//! Signatures: Ed25519, ECDSA on the NIST curves, RSA with PKCS#1 v1.5.
//!
//! Keys and signatures come and go as the plain numbers of their standards (big-endian, fixed
//! length), so that a protocol puts its own encoding around them. Signing is AWS-LC's: what ECDSA
//! needs of chance comes from AWS-LC's own generator, as blinding does.

mod ecdsa;
mod ed25519;
mod rsa;
mod wide;

pub use ecdsa::{EcCurve, EcdsaKey, ecdsa_verify};
pub use ed25519::{Ed25519Key, ed25519_verify};
pub use rsa::{RsaHash, RsaKey, RsaParts, RsaPublic, rsa_generate};
