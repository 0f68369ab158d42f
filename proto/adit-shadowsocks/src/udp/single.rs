//! Packets without a session: the AEAD edition (SIP004 section 4), method `none` and the stream
//! edition.

use core::ops::Range;

use adit_crypto::{Direction, TAG_LEN};
use adit_wire::{Broken, Entropy, Target, held, parse_addr};

use crate::material::Material;
use crate::salt::Salt;
use crate::writer::Writer;
use crate::{Edition, Key};

/// Each packet has its own key, so a constant nonce is safe.
const ZERO_NONCE: [u8; 24] = [0; 24];

/// Seals `packet[payload]` with the encoded `address` in front and returns the packet's range.
pub(super) fn seal(
    key: &Key,
    address: &[u8],
    packet: &mut [u8],
    payload: Range<usize>,
    entropy: &mut dyn Entropy,
) -> Result<Range<usize>, Broken> {
    let no_room = Broken::NoRoom("a packet's header");
    let plain = payload.start.checked_sub(address.len()).ok_or(no_room)?;
    if payload.start > payload.end || packet.len() < payload.end {
        return Err(no_room);
    }
    Writer::new(packet, plain..payload.start)?.put(address)?;
    let edition = key.method().edition();
    if edition == Edition::None {
        return Ok(plain..payload.end);
    }
    let salt = Salt::draw(key.method(), entropy);
    let start = plain.checked_sub(salt.len()).ok_or(no_room)?;
    Writer::new(packet, start..plain)?.put(&salt)?;
    if edition == Edition::Stream {
        let data = packet.get_mut(plain..payload.end).ok_or(no_room)?;
        key.start(&salt, Direction::Encrypt)?.apply(data);
        return Ok(start..payload.end);
    }
    let end = payload.end.checked_add(TAG_LEN).ok_or(no_room)?;
    let len = payload.end - plain;
    let (body, tag) = packet
        .get_mut(plain..end)
        .and_then(|b| b.split_at_mut_checked(len))
        .ok_or(Broken::NoRoom("a packet's tag"))?;
    let aead = key.material().session(&salt)?;
    let nonce = held(&ZERO_NONCE, ..aead.kind().nonce_len());
    tag.copy_from_slice(&aead.seal_in_place(nonce, body)?);
    Ok(start..end)
}

/// Opens `packet`; returns its address and the range of the data.
pub(super) fn open(key: &Key, packet: &mut [u8]) -> Result<(Target, Range<usize>), Broken> {
    if key.method().edition() != Edition::Stream {
        return open_material(key.material(), packet);
    }
    let short = Broken::Truncated("a packet");
    let iv = Salt::read(key.method(), packet).ok_or(short)?;
    let data = packet.get_mut(iv.len()..).ok_or(short)?;
    key.start(&iv, Direction::Decrypt)?.apply(data);
    addressed(packet, iv.len()..packet.len())
}

/// Opens `packet` with a key whose ciphers are not expanded, as stored for a server's users.
pub(super) fn open_material(
    key: &Material,
    packet: &mut [u8],
) -> Result<(Target, Range<usize>), Broken> {
    let plain = match key.method().edition() {
        Edition::None => 0..packet.len(),
        _ => decrypt(key, packet)?,
    };
    addressed(packet, plain)
}

fn addressed(packet: &[u8], plain: Range<usize>) -> Result<(Target, Range<usize>), Broken> {
    let bytes = held(packet, plain.clone());
    let (target, used) = parse_addr(bytes).map_err(|_| Broken::Malformed("address"))?;
    Ok((target, plain.start + used..plain.end))
}

fn decrypt(key: &Material, packet: &mut [u8]) -> Result<Range<usize>, Broken> {
    let short = Broken::Truncated("a packet");
    let salt = Salt::read(key.method(), packet).ok_or(short)?;
    let end = packet.len().checked_sub(TAG_LEN).ok_or(short)?;
    let len = end.checked_sub(salt.len()).ok_or(short)?;
    let (ct, tag) = packet
        .get_mut(salt.len()..)
        .and_then(|b| b.split_at_mut_checked(len))
        .ok_or(short)?;
    let aead = key.session(&salt)?;
    let nonce = held(&ZERO_NONCE, ..aead.kind().nonce_len());
    aead.open_in_place(nonce, ct, tag)?;
    Ok(salt.len()..end)
}
