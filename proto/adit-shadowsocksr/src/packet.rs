//! UDP packets: the layer below the cipher, around `target header ‖ payload`.
//!
//! ```text
//! auth_aes128_*  client  data ‖ uid ‖ MAC(4)
//!                server  data ‖ MAC(4), under the port's key also where there are users
//! auth_chain_*   client  RC4(data) ‖ noise ‖ a(3) ‖ masked uid ‖ MAC(1)
//!                server  RC4(data) ‖ noise ‖ a(7) ‖ MAC(1)
//! others                 data
//! ```
//! A tag of one byte accepts one forged packet in 256, and nothing here refuses replays: the
//! protocols have no stronger protection.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_crypto::{ct_eq, hmac_md5};
use adit_wire::{Entropy, ProtocolError};

use crate::ProtocolServer;
use crate::chain_padding::Generator;
use crate::field::{get_field, put_field, range_around, range_mut, range_ref};
use crate::mac::{Mac, MacKind};
use crate::port::PortParams;
use crate::protocol_kind::ProtocolFamily;
use crate::user_key::UserKey;

/// Tailroom in bytes that suffices for any protocol; no headroom is needed.
pub const PACKET_TAIL: usize = MAX_NOISE + FIELDS;

const MAX_NOISE: usize = 126;

/// Length of the fields after data and noise, in all forms except a server's `auth_aes128`.
const FIELDS: usize = 8;

const TAG: usize = 4;

/// The packet codec of a client's association.
pub struct PacketAssociation {
    port: Arc<PortParams>,
    user: Arc<UserKey>,
    uid: [u8; 4],
}

impl PacketAssociation {
    pub(crate) const fn new(port: Arc<PortParams>, user: Arc<UserKey>, uid: [u8; 4]) -> Self {
        Self { port, user, uid }
    }

    /// Seals `packet[payload]`, with [`PACKET_TAIL`] bytes after it, and returns the range to
    /// encrypt.
    ///
    /// # Errors
    ///
    /// Fails if there is too little room.
    pub fn seal_packet(
        &self,
        packet: &mut [u8],
        payload: Range<usize>,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let (key, user) = (self.port.key(), &*self.user);
        match self.port.kind.family() {
            ProtocolFamily::Mac(kind) => seal_tagged(kind, user.key(), &self.uid, packet, payload),
            ProtocolFamily::Chain(_) => {
                let mut a = [0; 3];
                entropy.fill(&mut a);
                let m = hmac_md5(key, &[&a]);
                let [x, y, z] = a;
                let [d, e, f, g] = mask_uid(self.uid, &m)?;
                let fields = [x, y, z, d, e, f, g];
                seal_chained(user, &m, fields, packet, payload, entropy)
            }
            _ => Ok(payload),
        }
    }

    /// Opens a server's decrypted packet and returns the range of its data.
    ///
    /// # Errors
    ///
    /// Fails if the packet is too short or not authentic.
    pub fn open_packet(&self, packet: &mut [u8]) -> Result<Range<usize>, ProtocolError> {
        match self.port.kind.family() {
            ProtocolFamily::Mac(kind) => open_tagged(kind, self.port.key(), packet),
            ProtocolFamily::Chain(_) => {
                let a: [u8; 7] = get_field(packet, fields_start(packet)?)?;
                let m = hmac_md5(self.port.key(), &[&a]);
                open_chained(&self.user, &m, packet)
            }
            _ => Ok(0..packet.len()),
        }
    }
}

impl fmt::Debug for PacketAssociation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("kind", &self.port.kind)
            .finish_non_exhaustive()
    }
}

impl ProtocolServer {
    /// Opens a client's decrypted packet and returns the user, if the port has users, and the range
    /// of the data.
    ///
    /// # Errors
    ///
    /// Fails if the packet is too short or not authentic, or if the user is unknown.
    pub fn open_packet(
        &self,
        packet: &mut [u8],
    ) -> Result<(Option<u32>, Range<usize>), ProtocolError> {
        let port = self.port();
        let find = |uid| self.find_user(uid).ok_or(ProtocolError::Unauthentic);
        match port.kind.family() {
            ProtocolFamily::Mac(kind) => {
                let at = fields_start(packet)?;
                let uid = u32::from_le_bytes(get_field(packet, at)?);
                open_tagged(kind, find(uid)?.key(), packet)?;
                Ok((self.accounted_uid(uid), 0..at))
            }
            ProtocolFamily::Chain(_) => {
                let at = fields_start(packet)?;
                let m = hmac_md5(port.key(), &[range_ref(packet, at..at + 3)?]);
                let uid = u32::from_le_bytes(mask_uid(get_field(packet, at + 3)?, &m)?);
                let payload = open_chained(&*find(uid)?, &m, packet)?;
                Ok((self.accounted_uid(uid), payload))
            }
            _ => Ok((None, 0..packet.len())),
        }
    }

    /// Seals `packet[payload]` for a user, with [`PACKET_TAIL`] bytes after it, and returns the
    /// range to encrypt. `uid` is the result of [`open_packet`](Self::open_packet).
    ///
    /// # Errors
    ///
    /// Fails if there is too little room or if the user is unknown.
    pub fn seal_packet(
        &self,
        uid: Option<u32>,
        packet: &mut [u8],
        payload: Range<usize>,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let port = self.port();
        match port.kind.family() {
            ProtocolFamily::Mac(kind) => seal_tagged(kind, port.key(), &[], packet, payload),
            ProtocolFamily::Chain(_) => {
                let user = self
                    .find_user(uid.unwrap_or(0))
                    .ok_or(ProtocolError::Unauthentic)?;
                let mut a = [0; 7];
                entropy.fill(&mut a);
                let m = hmac_md5(port.key(), &[&a]);
                seal_chained(&user, &m, a, packet, payload, entropy)
            }
            _ => Ok(payload),
        }
    }
}

/// Returns the start of the last [`FIELDS`] bytes; fails if there is nothing in front of them.
fn fields_start(packet: &[u8]) -> Result<usize, ProtocolError> {
    match packet.len().checked_sub(FIELDS) {
        None | Some(0) => Err(ProtocolError::Truncated("a packet")),
        Some(at) => Ok(at),
    }
}

fn seal_tagged(
    kind: MacKind,
    key: &[u8],
    uid: &[u8],
    packet: &mut [u8],
    payload: Range<usize>,
) -> Result<Range<usize>, ProtocolError> {
    let range = range_around(packet, &payload, 0, uid.len() + TAG)?;
    put_field(packet, payload.end, uid)?;
    let end = range.end - TAG;
    let tag = Mac::new(kind, key).tag::<TAG>(range_ref(packet, range.start..end)?);
    put_field(packet, end, &tag)?;
    Ok(range)
}

fn open_tagged(kind: MacKind, key: &[u8], packet: &[u8]) -> Result<Range<usize>, ProtocolError> {
    fields_start(packet)?;
    let end = packet.len() - TAG;
    let tag = Mac::new(kind, key).tag::<TAG>(range_ref(packet, 0..end)?);
    if !ct_eq(&tag, range_ref(packet, end..packet.len())?) {
        return Err(ProtocolError::Unauthentic);
    }
    Ok(0..end)
}

fn seal_chained(
    user: &UserKey,
    m: &[u8; 16],
    fields: [u8; FIELDS - 1],
    packet: &mut [u8],
    payload: Range<usize>,
    entropy: &mut dyn Entropy,
) -> Result<Range<usize>, ProtocolError> {
    let n = noise_len(m);
    let range = range_around(packet, &payload, 0, n + FIELDS)?;
    user.rc4_from_hash(m)
        .apply(range_mut(packet, payload.clone())?);
    if n > 0 {
        entropy.fill(range_mut(packet, payload.end..payload.end + n)?);
    }
    put_field(packet, payload.end + n, &fields)?;
    let end = range.end - 1;
    let [tag, ..] = hmac_md5(user.key(), &[range_ref(packet, range.start..end)?]);
    put_field(packet, end, &[tag])?;
    Ok(range)
}

fn open_chained(
    user: &UserKey,
    m: &[u8; 16],
    packet: &mut [u8],
) -> Result<Range<usize>, ProtocolError> {
    let at = fields_start(packet)?;
    let end = packet.len() - 1;
    let [tag, ..] = hmac_md5(user.key(), &[range_ref(packet, 0..end)?]);
    if !ct_eq(&[tag], &get_field::<1>(packet, end)?) {
        return Err(ProtocolError::Unauthentic);
    }
    let len = at.checked_sub(noise_len(m));
    let len = len.ok_or(ProtocolError::Malformed("packet: shorter than its noise"))?;
    user.rc4_from_hash(m).apply(range_mut(packet, 0..len)?);
    Ok(0..len)
}

fn noise_len(m: &[u8; 16]) -> usize {
    Generator::from_seed(m).draw_below(MAX_NOISE + 1)
}

fn mask_uid(uid: [u8; 4], m: &[u8; 16]) -> Result<[u8; 4], ProtocolError> {
    let mask = u32::from_ne_bytes(get_field(m, 0)?);
    Ok((u32::from_ne_bytes(uid) ^ mask).to_ne_bytes())
}
