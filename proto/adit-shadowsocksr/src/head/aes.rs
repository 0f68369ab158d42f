//! The first message of `auth_aes128_*`.

use core::ops::Range;

use adit_crypto::ct_eq;
use adit_wire::{Broken, Entropy, Step};

use super::{FORGED, Found};
use crate::field::{around, get, len_16, part, put, view};
use crate::hello::{HELLO, Hello};
use crate::mac::{Mac, MacKind};
use crate::noise::Noise;
use crate::user::UserKey;

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
pub(crate) fn noise_len(len: usize, noise: &mut Noise) -> usize {
    noise.up_to(if len > 400 { 511 } else { 1023 })
}

/// Reads and writes the first messages of one connection.
pub(crate) struct AesHead<'a> {
    pub(crate) kind: MacKind,
    /// The request's IV and the port's key.
    pub(crate) iv_key: &'a [u8],
}

impl AesHead<'_> {
    /// Writes the message around `record[payload]`, with `n` bytes of noise.
    pub(crate) fn pack(
        &self,
        (user, uid): (&UserKey, [u8; 4]),
        hello: &Hello,
        record: &mut [u8],
        payload: Range<usize>,
        n: usize,
        chance: &mut dyn Entropy,
    ) -> Result<Range<usize>, Broken> {
        let range = around(record, &payload, HEAD + n, TAG)?;
        let message = part(record, range.clone())?;
        let mac = Mac::new(self.kind, self.iv_key);
        chance.fill(part(message, 0..1)?);
        let tag = mac.tag::<6>(view(message, 0..1)?);
        put(message, 1, &tag)?;
        put(message, UID.start, &uid)?;
        let mut block = [0; 16];
        put(&mut block, 0, &hello.bytes())?;
        put(&mut block, HELLO, &len_16(message.len())?.to_le_bytes())?;
        put(&mut block, HELLO + 2, &len_16(n)?.to_le_bytes())?;
        user.block()?.encrypt(&mut block);
        put(message, BLOCK.start, &block)?;
        let tag = mac.tag::<TAG>(view(message, UID.start..BLOCK.end)?);
        put(message, BLOCK.end, &tag)?;
        if n > 0 {
            chance.fill(part(message, HEAD..HEAD + n)?);
        }
        let end = message.len() - TAG;
        let tag = Mac::new(self.kind, user.key()).tag::<TAG>(view(message, 0..end)?);
        put(message, end, &tag)?;
        Ok(range)
    }

    /// Reads a message. `find` returns the key of a user id, if it is allowed, and `timely` is true
    /// for a time that may be valid.
    pub(crate) fn read<'u>(
        &self,
        plain: &[u8],
        find: impl Fn(u32) -> Option<&'u UserKey>,
        timely: impl Fn(u32) -> bool,
    ) -> Result<Step<(Found, u32)>, Broken> {
        let need = |total| Ok(Step::NeedMore { total });
        if plain.len() < CHECK {
            return need(CHECK);
        }
        let mac = Mac::new(self.kind, self.iv_key);
        if !ct_eq(&mac.tag::<6>(view(plain, 0..1)?), view(plain, 1..CHECK)?) {
            return Err(FORGED);
        }
        if plain.len() < HEAD {
            return need(HEAD);
        }
        let tag = mac.tag::<TAG>(view(plain, UID.start..BLOCK.end)?);
        if !ct_eq(&tag, view(plain, BLOCK.end..HEAD)?) {
            return Err(FORGED);
        }
        let uid = u32::from_le_bytes(get(plain, UID.start)?);
        let user = find(uid).ok_or(FORGED)?;
        let mut block: [u8; 16] = get(plain, BLOCK.start)?;
        user.block()?.decrypt(&mut block);
        let total = usize::from(u16::from_le_bytes(get(&block, HELLO)?));
        let start = HEAD + usize::from(u16::from_le_bytes(get(&block, HELLO + 2)?));
        // Without the user's key the block decrypts to garbage. Do not trust its lengths, and do
        // not wait for a message with a time that no valid clock shows.
        let hello = Hello::read(&block)?;
        let whole = plain.len() >= total;
        if total < start + TAG || (!whole && !timely(hello.time)) {
            return Err(FORGED);
        }
        if !whole {
            return need(total);
        }
        let end = total - TAG;
        let tag = Mac::new(self.kind, user.key()).tag::<TAG>(view(plain, 0..end)?);
        if !ct_eq(&tag, view(plain, end..total)?) {
            return Err(FORGED);
        }
        let found = Found {
            hello,
            consumed: total,
            payload: start..end,
            proof: 0..HEAD,
        };
        Ok(Step::Done((found, uid)))
    }
}
