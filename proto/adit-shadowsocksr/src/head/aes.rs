//! The first message of `auth_aes128_*`.

use core::ops::{Deref, Range};

use adit_crypto::ct_eq;
use adit_wire::{Entropy, HandshakeProgress, ProtocolError};

use super::{FORGED, VerifiedHead};
use crate::field::{get_field, length_field, put_field, range_around, range_mut, range_ref};
use crate::hello::{HELLO_LEN, Hello};
use crate::mac::{Mac, MacKind};
use crate::noise::NoiseRng;
use crate::user_key::UserKey;

/// Length of `c ‖ MAC(6)`.
const CHECK: usize = 7;

const UID: Range<usize> = 7..11;
const BLOCK: Range<usize> = 11..27;

/// Length of everything in front of the noise.
const HEAD: usize = 31;

const TAG: usize = 4;

/// Maximum noise that a client sends.
const MAX_NOISE: usize = 1023;

/// Bytes in front of a payload, and after it.
pub(crate) const ROOM: (usize, usize) = (HEAD + MAX_NOISE, TAG);

/// Draws the length of the noise of a first message.
pub(crate) fn draw_noise_len(len: usize, noise: &mut NoiseRng) -> usize {
    noise.draw_up_to(if len > 400 { 511 } else { 1023 })
}

/// Reads and writes the first messages of one connection.
pub(crate) struct AesHead<'a> {
    pub(crate) kind: MacKind,
    /// The request's IV and the port's key.
    pub(crate) iv_key: &'a [u8],
}

impl AesHead<'_> {
    /// Writes the message around `record[payload]`, with `n` bytes of noise.
    pub(crate) fn pack_message(
        &self,
        (user, uid): (&UserKey, [u8; 4]),
        hello: &Hello,
        record: &mut [u8],
        payload: Range<usize>,
        n: usize,
        rng: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let range = range_around(record, &payload, HEAD + n, TAG)?;
        let message = range_mut(record, range.clone())?;
        let mac = Mac::new(self.kind, self.iv_key);
        rng.fill(range_mut(message, 0..1)?);
        let tag = mac.tag::<6>(range_ref(message, 0..1)?);
        put_field(message, 1, &tag)?;
        put_field(message, UID.start, &uid)?;
        let mut block = [0; 16];
        put_field(&mut block, 0, &hello.to_bytes())?;
        put_field(
            &mut block,
            HELLO_LEN,
            &length_field(message.len())?.to_le_bytes(),
        )?;
        put_field(&mut block, HELLO_LEN + 2, &length_field(n)?.to_le_bytes())?;
        user.block_cipher()?.encrypt_block(&mut block);
        put_field(message, BLOCK.start, &block)?;
        let tag = mac.tag::<TAG>(range_ref(message, UID.start..BLOCK.end)?);
        put_field(message, BLOCK.end, &tag)?;
        if n > 0 {
            rng.fill(range_mut(message, HEAD..HEAD + n)?);
        }
        let end = message.len() - TAG;
        let tag = Mac::new(self.kind, user.key()).tag::<TAG>(range_ref(message, 0..end)?);
        put_field(message, end, &tag)?;
        Ok(range)
    }

    /// Reads a message. `find` returns the key of a user id, if it is allowed, and `timely` is true
    /// for a time that may be valid.
    pub(crate) fn read_message<K: Deref<Target = UserKey>>(
        &self,
        plain: &[u8],
        find: impl Fn(u32) -> Option<K>,
        timely: impl Fn(u32) -> bool,
    ) -> Result<HandshakeProgress<(VerifiedHead, u32)>, ProtocolError> {
        let need = |total| Ok(HandshakeProgress::NeedMore { total });
        if plain.len() < CHECK {
            return need(CHECK);
        }
        let mac = Mac::new(self.kind, self.iv_key);
        if !ct_eq(
            &mac.tag::<6>(range_ref(plain, 0..1)?),
            range_ref(plain, 1..CHECK)?,
        ) {
            return Err(FORGED);
        }
        if plain.len() < HEAD {
            return need(HEAD);
        }
        let tag = mac.tag::<TAG>(range_ref(plain, UID.start..BLOCK.end)?);
        if !ct_eq(&tag, range_ref(plain, BLOCK.end..HEAD)?) {
            return Err(FORGED);
        }
        let uid = u32::from_le_bytes(get_field(plain, UID.start)?);
        let user = find(uid).ok_or(FORGED)?;
        let mut block: [u8; 16] = get_field(plain, BLOCK.start)?;
        user.block_cipher()?.decrypt_block(&mut block);
        let total = usize::from(u16::from_le_bytes(get_field(&block, HELLO_LEN)?));
        let start = HEAD + usize::from(u16::from_le_bytes(get_field(&block, HELLO_LEN + 2)?));
        // Without the user's key the block decrypts to garbage. Do not trust its lengths, and do
        // not wait for a message with a time that no valid clock shows.
        let hello = Hello::from_bytes(&block)?;
        let whole = plain.len() >= total;
        if total < start + TAG || (!whole && !timely(hello.time)) {
            return Err(FORGED);
        }
        if !whole {
            return need(total);
        }
        let end = total - TAG;
        let tag = Mac::new(self.kind, user.key()).tag::<TAG>(range_ref(plain, 0..end)?);
        if !ct_eq(&tag, range_ref(plain, end..total)?) {
            return Err(FORGED);
        }
        let found = VerifiedHead {
            hello,
            consumed: total,
            payload: start..end,
            proof: 0..HEAD,
        };
        Ok(HandshakeProgress::Done((found, uid)))
    }
}
