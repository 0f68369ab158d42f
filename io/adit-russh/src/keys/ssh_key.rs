//! The names of the crate `ssh-key` that programs written for russh use.
//!
//! A program that names that crate itself names this module instead.

pub use rand_core;

pub use super::algorithm::{Algorithm, EcdsaCurve, HashAlg};
pub use super::certificate::Certificate;
pub use super::error::SshKeyError as Error;
pub use super::private::PrivateKey;
pub use super::public::{Fingerprint, PublicKey};

/// Parts of public keys.
pub mod public {
    pub use crate::keys::public::{KeyData, PublicKey};
}

/// Parts of certificates.
pub mod certificate {
    pub use crate::keys::certificate::{CertType, Certificate};
}
