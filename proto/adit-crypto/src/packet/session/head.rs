//! The header of a session packet, and its types.

use adit_wire::Entropy;

use super::{BOUND, CHACHA};
use crate::AeadKind;

/// The AEAD of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionCipher {
    /// AES-128-GCM
    Aes128Gcm,
    /// ChaCha20-Poly1305
    ChaCha20Poly1305,
}

impl SessionCipher {
    /// Returns AES if the CPU has instructions for it and for GCM's multiplication, otherwise
    /// ChaCha20-Poly1305.
    #[must_use]
    pub fn preferred() -> Self {
        #[cfg(target_arch = "x86_64")]
        let aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        let aes = std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let aes = false;
        if aes {
            Self::Aes128Gcm
        } else {
            Self::ChaCha20Poly1305
        }
    }

    pub(super) const fn aead_kind(self) -> AeadKind {
        match self {
            Self::Aes128Gcm => AeadKind::Aes128Gcm,
            Self::ChaCha20Poly1305 => AeadKind::ChaCha20Poly1305,
        }
    }

    pub(super) const fn flag_bit(self) -> u64 {
        match self {
            Self::Aes128Gcm => 0,
            Self::ChaCha20Poly1305 => CHACHA,
        }
    }
}

/// A session identifier of one end; a server finds the session by it, whatever the packet's source address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub(super) [u8; 8]);

impl SessionId {
    pub(super) fn random(rng: &mut dyn Entropy) -> Self {
        let mut id = [0; 8];
        rng.fill(&mut id);
        Self(id)
    }

    /// Returns the identifier as a number.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

/// A decrypted packet header. It is authentic only once the packet has been opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionHeader {
    pub(super) id: SessionId,
    pub(super) number: u64,
}

impl SessionHeader {
    /// Returns the sender's identifier of the session.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    pub(super) const fn counter(&self) -> u64 {
        self.number & (BOUND - 1)
    }

    /// Returns the cipher; `None` if undefined bits are set.
    pub(super) const fn cipher(&self) -> Option<SessionCipher> {
        if self.number >> 58 != 0 {
            None
        } else if self.number & CHACHA == 0 {
            Some(SessionCipher::Aes128Gcm)
        } else {
            Some(SessionCipher::ChaCha20Poly1305)
        }
    }

    pub(super) const fn is_bound(&self) -> bool {
        self.number & BOUND != 0
    }
}
