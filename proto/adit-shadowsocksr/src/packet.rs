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

use crate::Server;
use crate::chain::Generator;
use crate::field::{around, get, part, put, view};
use crate::kind::Family;
use crate::mac::{Mac, MacKind};
use crate::port::Port;
use crate::user::UserKey;

/// Tailroom in bytes that suffices for any protocol; no headroom is needed.
pub const PACKET_TAIL: usize = MAX_NOISE + FIELDS;

const MAX_NOISE: usize = 126;

/// Length of the fields after data and noise, in all forms except a server's `auth_aes128`.
const FIELDS: usize = 8;

const TAG: usize = 4;

/// The packet codec of a client's association.
pub struct Association {
    port: Arc<Port>,
    user: Arc<UserKey>,
    uid: [u8; 4],
}

impl Association {
    pub(crate) const fn new(port: Arc<Port>, user: Arc<UserKey>, uid: [u8; 4]) -> Self {
        Self { port, user, uid }
    }

    /// Seals `packet[payload]`, with [`PACKET_TAIL`] bytes after it, and returns the range to
    /// encrypt.
    ///
    /// # Errors
    ///
    /// Fails if there is too little room.
    pub fn seal(
        &self,
        packet: &mut [u8],
        payload: Range<usize>,
        entropy: &mut dyn Entropy,
    ) -> Result<Range<usize>, ProtocolError> {
        let (key, user) = (self.port.key(), &*self.user);
        match self.port.kind.family() {
            Family::Mac(kind) => seal_tagged(kind, user.key(), &self.uid, packet, payload),
            Family::Chain(_) => {
                let mut a = [0; 3];
                entropy.fill(&mut a);
                let m = hmac_md5(key, &[&a]);
                let [x, y, z] = a;
                let [d, e, f, g] = masked(self.uid, &m)?;
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
    pub fn open(&self, packet: &mut [u8]) -> Result<Range<usize>, ProtocolError> {
        match self.port.kind.family() {
            Family::Mac(kind) => open_tagged(kind, self.port.key(), packet),
            Family::Chain(_) => {
                let a: [u8; 7] = get(packet, fields(packet)?)?;
                let m = hmac_md5(self.port.key(), &[&a]);
                open_chained(&self.user, &m, packet)
            }
            _ => Ok(0..packet.len()),
        }
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("kind", &self.port.kind)
            .finish_non_exhaustive()
    }
}

impl Server {
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
        let find = |uid| self.find(uid).ok_or(ProtocolError::Unauthentic);
        match port.kind.family() {
            Family::Mac(kind) => {
                let at = fields(packet)?;
                let uid = u32::from_le_bytes(get(packet, at)?);
                open_tagged(kind, find(uid)?.key(), packet)?;
                Ok((self.known(uid), 0..at))
            }
            Family::Chain(_) => {
                let at = fields(packet)?;
                let m = hmac_md5(port.key(), &[view(packet, at..at + 3)?]);
                let uid = u32::from_le_bytes(masked(get(packet, at + 3)?, &m)?);
                let payload = open_chained(find(uid)?, &m, packet)?;
                Ok((self.known(uid), payload))
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
            Family::Mac(kind) => seal_tagged(kind, port.key(), &[], packet, payload),
            Family::Chain(_) => {
                let user = self
                    .find(uid.unwrap_or(0))
                    .ok_or(ProtocolError::Unauthentic)?;
                let mut a = [0; 7];
                entropy.fill(&mut a);
                let m = hmac_md5(port.key(), &[&a]);
                seal_chained(user, &m, a, packet, payload, entropy)
            }
            _ => Ok(payload),
        }
    }
}

/// Returns the start of the last [`FIELDS`] bytes; fails if there is nothing in front of them.
fn fields(packet: &[u8]) -> Result<usize, ProtocolError> {
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
    let range = around(packet, &payload, 0, uid.len() + TAG)?;
    put(packet, payload.end, uid)?;
    let end = range.end - TAG;
    let tag = Mac::new(kind, key).tag::<TAG>(view(packet, range.start..end)?);
    put(packet, end, &tag)?;
    Ok(range)
}

fn open_tagged(kind: MacKind, key: &[u8], packet: &[u8]) -> Result<Range<usize>, ProtocolError> {
    fields(packet)?;
    let end = packet.len() - TAG;
    let tag = Mac::new(kind, key).tag::<TAG>(view(packet, 0..end)?);
    if !ct_eq(&tag, view(packet, end..packet.len())?) {
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
    let range = around(packet, &payload, 0, n + FIELDS)?;
    user.rc4(m).apply(part(packet, payload.clone())?);
    if n > 0 {
        entropy.fill(part(packet, payload.end..payload.end + n)?);
    }
    put(packet, payload.end + n, &fields)?;
    let end = range.end - 1;
    let [tag, ..] = hmac_md5(user.key(), &[view(packet, range.start..end)?]);
    put(packet, end, &[tag])?;
    Ok(range)
}

fn open_chained(
    user: &UserKey,
    m: &[u8; 16],
    packet: &mut [u8],
) -> Result<Range<usize>, ProtocolError> {
    let at = fields(packet)?;
    let end = packet.len() - 1;
    let [tag, ..] = hmac_md5(user.key(), &[view(packet, 0..end)?]);
    if !ct_eq(&[tag], &get::<1>(packet, end)?) {
        return Err(ProtocolError::Unauthentic);
    }
    let len = at.checked_sub(noise_len(m));
    let len = len.ok_or(ProtocolError::Malformed("packet: shorter than its noise"))?;
    user.rc4(m).apply(part(packet, 0..len)?);
    Ok(0..len)
}

fn noise_len(m: &[u8; 16]) -> usize {
    Generator::seed(m).below(MAX_NOISE + 1)
}

fn masked(uid: [u8; 4], m: &[u8; 16]) -> Result<[u8; 4], ProtocolError> {
    let mask = u32::from_ne_bytes(get(m, 0)?);
    Ok((u32::from_ne_bytes(uid) ^ mask).to_ne_bytes())
}
