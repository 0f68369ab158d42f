//! The traits of RustCrypto: keys as [`KeyInit`], and a message with its nonce as
//! [`Mac`](digest::Mac).
//!
//! `universal_hash::UniversalHash` is not implemented: its input is padded with zeros to whole
//! blocks, while UHASH includes the length of the message.

use core::borrow::Borrow;
use core::fmt;

use digest::array::AssocArraySize;
use digest::common::{InnerIvInit, InnerUser, Iv, IvSizeUser, KeySizeUser};
use digest::consts::{U8, U16};
use digest::{FixedOutput, Key, KeyInit, MacMarker, Output, OutputSizeUser, Update};
use zeroize::ZeroizeOnDrop;

use crate::uhash::UhashState;
use crate::{Hasher, Nonce, Umac, UmacSession};

impl<const TAG: usize> KeySizeUser for Umac<TAG> {
    type KeySize = U16;
}

impl<const TAG: usize> KeyInit for Umac<TAG> {
    fn new(key: &Key<Self>) -> Self {
        Self::new(key.as_ref())
    }
}

impl<const TAG: usize> KeySizeUser for UmacSession<TAG> {
    type KeySize = U16;
}

impl<const TAG: usize> KeyInit for UmacSession<TAG> {
    fn new(key: &Key<Self>) -> Self {
        Self::new(key.as_ref())
    }
}

impl<const TAG: usize> ZeroizeOnDrop for Umac<TAG> {}
impl<const TAG: usize> ZeroizeOnDrop for UmacSession<TAG> {}
impl<const TAG: usize> ZeroizeOnDrop for Hasher<'_, TAG> {}

/// The tag of one message: a key, a nonce, and the parts of the message so far. It implements
/// [`Mac`](digest::Mac), whose `verify` takes constant time.
///
/// `K` is a key of its own (`Umac<TAG>`) or a borrowed one (`&Umac<TAG>`), which saves the
/// expansion for each message. With a key of its own, it implements
/// [`KeyIvInit`](digest::common::KeyIvInit) for nonces of 8 bytes.
///
/// It can be neither cloned nor reset, because a second message must have another nonce. Do not use
/// `verify_truncated_left` or `verify_truncated_right`: a tag of fewer bytes is as easy to guess as
/// that of a shorter UMAC, and is not its tag.
///
/// # Examples
///
/// ```
/// use adit_umac::{Nonce, NoncedUmac, Umac};
/// use digest::{KeyInit, Mac};
///
/// let key = <Umac<8> as KeyInit>::new_from_slice(b"abcdefghijklmnop")?;
/// let message = NoncedUmac::with_nonce(&key, Nonce::from(7u64)).chain_update(b"message");
/// let tag = message.finalize().into_bytes();
///
/// let received = NoncedUmac::with_nonce(&key, Nonce::from(7u64)).chain_update(b"message");
/// assert!(received.verify_slice(&tag).is_ok());
/// # Ok::<(), digest::InvalidLength>(())
/// ```
pub struct NoncedUmac<const TAG: usize, K = Umac<TAG>> {
    umac: K,
    nonce: Nonce,
    state: UhashState<TAG>,
}

impl<const TAG: usize, K: Borrow<Umac<TAG>>> NoncedUmac<TAG, K> {
    /// Begins the only message with this `nonce`.
    #[must_use]
    pub const fn with_nonce(umac: K, nonce: Nonce) -> Self {
        Self {
            umac,
            nonce,
            state: UhashState::new(),
        }
    }
}

impl<const TAG: usize, K: Borrow<Umac<TAG>>> InnerUser for NoncedUmac<TAG, K> {
    type Inner = K;
}

impl<const TAG: usize, K: Borrow<Umac<TAG>>> IvSizeUser for NoncedUmac<TAG, K> {
    type IvSize = U8;
}

impl<const TAG: usize, K: Borrow<Umac<TAG>>> InnerIvInit for NoncedUmac<TAG, K> {
    fn inner_iv_init(inner: K, iv: &Iv<Self>) -> Self {
        let octets: &[u8; 8] = iv.as_ref();
        Self::with_nonce(inner, Nonce::from(*octets))
    }
}

impl<const TAG: usize, K: Borrow<Umac<TAG>>> Update for NoncedUmac<TAG, K> {
    fn update(&mut self, data: &[u8]) {
        self.umac.borrow().absorb_part(&mut self.state, data);
    }
}

impl<const TAG: usize, K> OutputSizeUser for NoncedUmac<TAG, K>
where
    [u8; TAG]: AssocArraySize,
{
    type OutputSize = <[u8; TAG] as AssocArraySize>::Size;
}

impl<const TAG: usize, K: Borrow<Umac<TAG>>> FixedOutput for NoncedUmac<TAG, K>
where
    [u8; TAG]: AssocArraySize,
{
    fn finalize_into(mut self, out: &mut Output<Self>) {
        let tag = self
            .umac
            .borrow()
            .finish_state(None, self.nonce, &mut self.state);
        for (to, from) in out.iter_mut().zip(tag.into_array()) {
            *to = from;
        }
    }
}

impl<const TAG: usize, K> MacMarker for NoncedUmac<TAG, K> {}

impl<const TAG: usize> ZeroizeOnDrop for NoncedUmac<TAG, Umac<TAG>> {}

impl<const TAG: usize, K> fmt::Debug for NoncedUmac<TAG, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoncedUmac<{TAG}>(***)")
    }
}
