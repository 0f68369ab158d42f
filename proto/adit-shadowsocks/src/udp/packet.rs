//! Packets of the 2022 edition (SIP022 section 3.2): framing, keys, body.

use core::ops::Range;

use adit_crypto::{AeadKey, TAG_LEN};
use adit_wire::{
    EndOfInput, ProtocolError, Reader, Target, UnixTime, encode_addr, narrow_int, parse_addr,
};

use crate::header_writer::HeaderWriter;
use crate::identity::{IDENTITY_LEN, IdentityHash};
use crate::key::PacketCipher;
use crate::key_chain::IdentityLink;
use crate::key_material::KeyMaterial;
use crate::{Key, KeyChain, timestamp};

/// session ‖ packet id
pub(crate) const IDS_LEN: usize = 16;

/// Minimum length of a body in bytes: type, time, length of the padding, tag.
pub(crate) const BODY_MIN: usize = 1 + 8 + 2 + TAG_LEN;

/// Length of the nonce in front of a packet of the ChaCha methods.
pub(super) const NONCE_LEN: usize = 24;

const REQUEST: u8 = 0;
const RESPONSE: u8 = 1;

/// The numbers that identify a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketIds {
    /// The sender's session.
    pub(super) session: u64,
    pub(super) packet: u64,
}

impl PacketIds {
    fn to_bytes(self) -> [u8; IDS_LEN] {
        let both = u128::from(self.session) << 64 | u128::from(self.packet);
        both.to_be_bytes()
    }
}

/// The key for the bodies of one session.
pub(super) enum BodyKey {
    /// AES methods: derived from the session's id.
    Session(Box<AeadKey>),
    /// ChaCha methods: the key itself seals.
    Shared,
}

impl BodyKey {
    pub(super) fn derive(key: &KeyMaterial, session: u64) -> Self {
        if !key.method().has_identities() {
            return Self::Shared;
        }
        // No method with AES fails here; if one did, its packets would be refused.
        key.derive_session_key(&session.to_be_bytes())
            .map_or(Self::Shared, |aead| Self::Session(Box::new(aead)))
    }
}

/// Number of packets after which a session's key stays expanded. An expanded key takes 0.7 KiB;
/// deriving it again costs a short session half a microsecond per packet.
const KEEP_AFTER_PACKETS: u8 = 8;

/// The key for the bodies of one session, kept expanded if the session has enough packets.
#[derive(Default)]
pub(super) struct CachedBodyKey {
    kept: Option<BodyKey>,
    uses: u8,
}

impl CachedBodyKey {
    /// Calls `work` with the key of the session: the kept one, or the one that `derive` returns.
    pub(super) fn with_key<T>(
        &mut self,
        derive: impl FnOnce() -> Result<BodyKey, ProtocolError>,
        work: impl FnOnce(&BodyKey) -> Result<T, ProtocolError>,
    ) -> Result<T, ProtocolError> {
        if let Some(kept) = &self.kept {
            return work(kept);
        }
        let derived = derive()?;
        let done = work(&derived);
        self.uses += 1;
        if self.uses >= KEEP_AFTER_PACKETS {
            self.kept = Some(derived);
        }
        done
    }
}

/// A packet to seal.
pub(super) struct OutgoingPacket<'a> {
    pub(super) ids: PacketIds,
    /// The sealed plaintext before the data, as written by [`put_head`].
    pub(super) head: &'a [u8],
    /// Random nonce of the ChaCha methods.
    pub(super) nonce: [u8; NONCE_LEN],
}

/// Appends the head of a body to `out`: `answers` is the client's session in a server's answers.
pub(super) fn put_head(
    out: &mut Vec<u8>,
    answers: Option<u64>,
    stamp: UnixTime,
    padding: &[u8],
    peer: &Target,
) {
    out.push(answers.map_or(REQUEST, |_| RESPONSE));
    out.extend_from_slice(&stamp.0.to_be_bytes());
    if let Some(session) = answers {
        out.extend_from_slice(&session.to_be_bytes());
    }
    // Senders add at most 900 bytes of padding.
    let len = narrow_int::<u16>(padding.len());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(padding);
    encode_addr(peer, out);
}

/// Returns the number of bytes in front of the head of a body.
pub(super) fn outer_len(chain: &KeyChain) -> usize {
    let nonce = match chain.user_key().packet_cipher() {
        PacketCipher::ChaCha(_) => NONCE_LEN,
        _ => 0,
    };
    nonce + IDS_LEN + chain.identity_links().len() * IDENTITY_LEN
}

impl OutgoingPacket<'_> {
    /// Writes and seals the packet around `packet[payload]` and returns its range.
    pub(super) fn seal_packet(
        &self,
        chain: &KeyChain,
        body_key: &BodyKey,
        packet: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let (key, links) = (chain.user_key(), chain.identity_links());
        let no_room = ProtocolError::NoRoom("a packet's header");
        let len = outer_len(chain) + self.head.len();
        let start = payload.start.checked_sub(len).ok_or(no_room)?;
        let end = payload.end.checked_add(TAG_LEN).ok_or(no_room)?;
        if packet.len() < end || payload.start > payload.end {
            return Err(ProtocolError::NoRoom("a packet's tag"));
        }
        let ids = self.ids.to_bytes();
        let mut w = HeaderWriter::new(packet, start..payload.start)?;
        if let PacketCipher::ChaCha(_) = key.packet_cipher() {
            w.put_bytes(&self.nonce)?;
        }
        w.put_bytes(&ids)?;
        for IdentityLink { identity, next } in links {
            let cipher = identity.header_cipher().ok_or(WRONG_EDITION)?;
            w.put_bytes(&next.seal_packet(cipher, &ids))?;
        }
        w.put_bytes(self.head)?;

        let sealed = packet.get_mut(start..end).ok_or(no_room)?;
        match (key.packet_cipher(), body_key) {
            (PacketCipher::Aes(header), BodyKey::Session(body_key)) => {
                let (ids_field, rest) = sealed.split_first_chunk_mut().ok_or(no_room)?;
                let body = rest.get_mut(links.len() * IDENTITY_LEN..).ok_or(no_room)?;
                seal_all_but_tag(body_key, nonce_of(&ids), body)?;
                let first = links.first().and_then(|link| link.identity.header_cipher());
                first.unwrap_or(header).encrypt_block(ids_field);
            }
            (PacketCipher::ChaCha(aead), _) => {
                let body = sealed.get_mut(NONCE_LEN..).ok_or(no_room)?;
                seal_all_but_tag(aead, &self.nonce, body)?;
            }
            _ => return Err(WRONG_EDITION),
        }
        Ok(start..end)
    }
}

const WRONG_EDITION: ProtocolError = ProtocolError::Malformed("method: no sessions");

/// Returns the nonce: bytes 4 to 15 of the separate header.
fn nonce_of(ids: &[u8; IDS_LEN]) -> &[u8] {
    let (_, nonce) = ids.split_at(4);
    nonce
}

fn seal_all_but_tag(aead: &AeadKey, nonce: &[u8], buf: &mut [u8]) -> Result<(), ProtocolError> {
    let len = buf.len().checked_sub(TAG_LEN);
    let (plain, tag) = len
        .and_then(|len| buf.split_at_mut_checked(len))
        .ok_or(ProtocolError::NoRoom("a packet's tag"))?;
    tag.copy_from_slice(&aead.seal_in_place(nonce, plain)?);
    Ok(())
}

fn open_all_but_tag(aead: &AeadKey, nonce: &[u8], buf: &mut [u8]) -> Result<(), ProtocolError> {
    let len = buf.len().checked_sub(TAG_LEN);
    let (ct, tag) = len
        .and_then(|len| buf.split_at_mut_checked(len))
        .ok_or(ProtocolError::Truncated("a packet"))?;
    Ok(aead.open_in_place(nonce, ct, tag)?)
}

/// Reads the ids of a packet. In AES methods it decrypts the separate header, which has no tag, in
/// place; in ChaCha methods it opens the whole packet.
pub(super) fn open_ids(key: &Key, packet: &mut [u8]) -> Result<PacketIds, ProtocolError> {
    let short = |EndOfInput| ProtocolError::Truncated("a packet");
    let mut r = match key.packet_cipher() {
        PacketCipher::Aes(header) => {
            let block = packet.first_chunk_mut().ok_or(EndOfInput).map_err(short)?;
            header.decrypt_block(block);
            Reader::new(block)
        }
        PacketCipher::ChaCha(aead) => {
            let (nonce, sealed) = packet
                .split_first_chunk_mut::<NONCE_LEN>()
                .ok_or(EndOfInput)
                .map_err(short)?;
            open_all_but_tag(aead, nonce, sealed)?;
            Reader::new(sealed)
        }
        PacketCipher::Unused => return Err(WRONG_EDITION),
    };
    Ok(PacketIds {
        session: r.u64().map_err(short)?,
        packet: r.u64().map_err(short)?,
    })
}

/// Reads the identity header of a packet after [`open_ids`] with the same key.
pub(super) fn open_identity(identity: &Key, packet: &[u8]) -> Result<IdentityHash, ProtocolError> {
    let cipher = identity.header_cipher().ok_or(WRONG_EDITION)?;
    let short = |EndOfInput| ProtocolError::Truncated("a packet");
    let mut r = Reader::new(packet);
    let ids = r.array().map_err(short)?;
    let header = r.array().map_err(short)?;
    Ok(IdentityHash::open_packet(cipher, &ids, header))
}

/// The content of a body, fully checked.
pub(super) struct OpenedBody {
    pub(super) stamp: UnixTime,
    pub(super) target: Target,
    pub(super) payload: Range<usize>,
}

/// Opens the body of a packet after [`open_ids`] with `key`, and checks its type, time, session (if
/// it `answers` one), padding and address. `identities` is the number of bytes of identity headers
/// before it.
pub(super) fn open_body(
    key: &Key,
    body_key: &BodyKey,
    packet: &mut [u8],
    identities: usize,
    answers: Option<u64>,
    now: UnixTime,
) -> Result<OpenedBody, ProtocolError> {
    let start = match (key.packet_cipher(), body_key) {
        (PacketCipher::Aes(_), BodyKey::Session(body_key)) => {
            let short = ProtocolError::Truncated("a packet");
            let (ids, rest) = packet.split_first_chunk_mut().ok_or(short)?;
            let body = rest.get_mut(identities..).ok_or(short)?;
            open_all_but_tag(body_key, nonce_of(ids), body)?;
            IDS_LEN + identities
        }
        (PacketCipher::ChaCha(_), _) => NONCE_LEN + IDS_LEN,
        _ => return Err(WRONG_EDITION),
    };
    let end = packet.len().saturating_sub(TAG_LEN);
    let body = packet
        .get(start..end)
        .ok_or(ProtocolError::Truncated("a packet"))?;
    let (stamp, target, used) = parse_body(body, answers, now)?;
    Ok(OpenedBody {
        stamp,
        target,
        payload: start + used..end,
    })
}

/// Parses an opened body: its time, its target, and the number of bytes before the data.
fn parse_body(
    body: &[u8],
    answers: Option<u64>,
    now: UnixTime,
) -> Result<(UnixTime, Target, usize), ProtocolError> {
    let short = |EndOfInput| ProtocolError::Malformed("packet header");
    let mut r = Reader::new(body);
    let kind = r.u8().map_err(short)?;
    if kind != answers.map_or(REQUEST, |_| RESPONSE) {
        return Err(ProtocolError::Malformed("packet type"));
    }
    let stamp = UnixTime(r.u64().map_err(short)?);
    timestamp::check_timestamp(stamp, now)?;
    if let Some(session) = answers
        && r.u64().map_err(short)? != session
    {
        return Err(ProtocolError::Malformed("packet: answers another session"));
    }
    let padding = usize::from(r.u16().map_err(short)?);
    r.take(padding).map_err(short)?;
    let (target, used) = parse_addr(r.rest()).map_err(|_| ProtocolError::Malformed("address"))?;
    Ok((stamp, target, r.consumed() + used))
}
