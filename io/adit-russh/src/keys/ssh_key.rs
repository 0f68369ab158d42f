//! The names of the crate `ssh-key` that programs for russh use.
//!
//! Replace the name of that crate by this module.

pub use rand_core;

pub use super::algorithm::{Algorithm, EcdsaCurve, HashAlg};
pub use super::certificate::Certificate;
pub use super::error::SshKeyError as Error;
pub use super::private::PrivateKey;
pub use super::public::{Fingerprint, PublicKey};

/// Types of public keys.
pub mod public {
    pub use crate::keys::public::{KeyData, PublicKey};
}

/// Types of certificates.
pub mod certificate {
    pub use crate::keys::certificate::{CertType, Certificate};
}
