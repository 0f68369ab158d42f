//! The MACs of packets: UMAC with the sequence number as its nonce, HMAC with it in front.

use adit_crypto::{HmacKey, HmacKind, ct_eq};
use adit_umac::{Nonce, Session};

use crate::SshError;
use crate::algorithm::Mac;

/// The key of one direction.
#[allow(
    clippy::large_enum_variant,
    reason = "one per direction, and a pointer less on the way of each packet"
)]
pub(super) enum MacKey {
    Umac64(Session<8>),
    Umac128(Session<16>),
    Hmac(HmacKey),
}

impl MacKey {
    pub(super) fn new(mac: Mac, key: &[u8]) -> Result<Self, SshError> {
        const WRONG: SshError = SshError::Crypto("length of a MAC's key");
        if key.len() != mac.key_tag_len().0 {
            return Err(WRONG);
        }
        let umac = || key.try_into().map_err(|_| WRONG);
        Ok(match mac {
            Mac::Umac64 | Mac::Umac64Etm => Self::Umac64(Session::new(umac()?)),
            Mac::Umac128 | Mac::Umac128Etm => Self::Umac128(Session::new(umac()?)),
            Mac::HmacSha1 | Mac::HmacSha1Etm => Self::Hmac(HmacKey::new(HmacKind::Sha1, key)),
            Mac::HmacSha256 | Mac::HmacSha256Etm => Self::Hmac(HmacKey::new(HmacKind::Sha256, key)),
            Mac::HmacSha512 | Mac::HmacSha512Etm => Self::Hmac(HmacKey::new(HmacKind::Sha512, key)),
        })
    }

    /// Fills in the tag of packet `sequence`.
    #[inline]
    pub(super) fn write(
        &mut self,
        sequence: u32,
        packet: &[u8],
        tag: &mut [u8],
    ) -> Result<(), SshError> {
        let nonce = Nonce::from(u64::from(sequence));
        match self {
            Self::Umac64(umac) => copy(umac.tag(nonce, packet).as_ref(), tag),
            Self::Umac128(umac) => copy(umac.tag(nonce, packet).as_ref(), tag),
            Self::Hmac(hmac) => copy(hmac.tag(&[&sequence.to_be_bytes(), packet]).as_ref(), tag),
        }
    }

    /// Whether `tag` is that of packet `sequence`.
    #[inline]
    pub(super) fn fits(&mut self, sequence: u32, packet: &[u8], tag: &[u8]) -> bool {
        let nonce = Nonce::from(u64::from(sequence));
        match self {
            Self::Umac64(umac) => umac.verify(nonce, packet, tag).is_ok(),
            Self::Umac128(umac) => umac.verify(nonce, packet, tag).is_ok(),
            Self::Hmac(hmac) => ct_eq(hmac.tag(&[&sequence.to_be_bytes(), packet]).as_ref(), tag),
        }
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> Result<(), SshError> {
    if from.len() != to.len() {
        return Err(SshError::Crypto("room for a tag"));
    }
    to.copy_from_slice(from);
    Ok(())
}
