//! Packets without a session: the AEAD edition (SIP004 section 4), method `none` and the stream
//! edition.

use core::ops::Range;

use adit_crypto::{Direction, TAG_LEN};
use adit_wire::{Entropy, ProtocolError, Target, parse_addr, subslice};

use crate::header_writer::HeaderWriter;
use crate::key_material::KeyMaterial;
use crate::salt::Salt;
use crate::{Edition, Key};

/// Each packet has its own key, so a constant nonce is safe.
const ZERO_NONCE: [u8; 24] = [0; 24];

/// Seals `packet[payload]` with the encoded `address` in front and returns the packet's range.
pub(super) fn seal_packet(
    key: &Key,
    address: &[u8],
    packet: &mut [u8],
    payload: Range<usize>,
    entropy: &mut dyn Entropy,
) -> Result<Range<usize>, ProtocolError> {
    let no_room = ProtocolError::NoRoom("a packet's header");
    let plain = payload.start.checked_sub(address.len()).ok_or(no_room)?;
    if payload.start > payload.end || packet.len() < payload.end {
        return Err(no_room);
    }
    HeaderWriter::new(packet, plain..payload.start)?.put_bytes(address)?;
    let edition = key.method().edition();
    if edition == Edition::None {
        return Ok(plain..payload.end);
    }
    let salt = Salt::draw_random(key.method(), entropy);
    let start = plain.checked_sub(salt.len()).ok_or(no_room)?;
    HeaderWriter::new(packet, start..plain)?.put_bytes(&salt)?;
    if edition == Edition::Stream {
        let data = packet.get_mut(plain..payload.end).ok_or(no_room)?;
        key.start_cipher(&salt, Direction::Encrypt)?.apply(data);
        return Ok(start..payload.end);
    }
    let end = payload.end.checked_add(TAG_LEN).ok_or(no_room)?;
    let len = payload.end - plain;
    let (body, tag) = packet
        .get_mut(plain..end)
        .and_then(|b| b.split_at_mut_checked(len))
        .ok_or(ProtocolError::NoRoom("a packet's tag"))?;
    let aead = key.material().derive_session_key(&salt)?;
    let nonce = subslice(&ZERO_NONCE, ..aead.kind().nonce_len());
    tag.copy_from_slice(&aead.seal_in_place(nonce, body)?);
    Ok(start..end)
}

/// Opens `packet`; returns its address and the range of the data.
pub(super) fn open_packet(
    key: &Key,
    packet: &mut [u8],
) -> Result<(Target, Range<usize>), ProtocolError> {
    if key.method().edition() != Edition::Stream {
        return open_with_material(key.material(), packet);
    }
    let short = ProtocolError::Truncated("a packet");
    let iv = Salt::read_from(key.method(), packet).ok_or(short)?;
    let data = packet.get_mut(iv.len()..).ok_or(short)?;
    key.start_cipher(&iv, Direction::Decrypt)?.apply(data);
    split_address(packet, iv.len()..packet.len())
}

/// Opens `packet` with a key whose ciphers are not expanded, as stored for a server's users.
pub(super) fn open_with_material(
    key: &KeyMaterial,
    packet: &mut [u8],
) -> Result<(Target, Range<usize>), ProtocolError> {
    let plain = match key.method().edition() {
        Edition::None => 0..packet.len(),
        _ => open_sealed(key, packet)?,
    };
    split_address(packet, plain)
}

fn split_address(
    packet: &[u8],
    plain: Range<usize>,
) -> Result<(Target, Range<usize>), ProtocolError> {
    let bytes = subslice(packet, plain.clone());
    let (target, used) = parse_addr(bytes).map_err(|_| ProtocolError::Malformed("address"))?;
    Ok((target, plain.start + used..plain.end))
}

fn open_sealed(key: &KeyMaterial, packet: &mut [u8]) -> Result<Range<usize>, ProtocolError> {
    let short = ProtocolError::Truncated("a packet");
    let salt = Salt::read_from(key.method(), packet).ok_or(short)?;
    let end = packet.len().checked_sub(TAG_LEN).ok_or(short)?;
    let len = end.checked_sub(salt.len()).ok_or(short)?;
    let (ct, tag) = packet
        .get_mut(salt.len()..)
        .and_then(|b| b.split_at_mut_checked(len))
        .ok_or(short)?;
    let aead = key.derive_session_key(&salt)?;
    let nonce = subslice(&ZERO_NONCE, ..aead.kind().nonce_len());
    aead.open_in_place(nonce, ct, tag)?;
    Ok(salt.len()..end)
}
