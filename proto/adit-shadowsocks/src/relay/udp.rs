//! The relay of a client's packets.

use core::ops::Range;

use adit_wire::{EndOfInput, ProtocolError, Reader};

use super::{RelayTable, header_cipher};
use crate::identity::{IDENTITY_LEN, IdentityHash};
use crate::udp::{BODY_MIN, IDS_LEN};

/// The next hop of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayedPacket {
    /// The client's session id, which has one return path; not authenticated.
    pub session: u64,
    /// Index of the next hop.
    pub next: usize,
    /// The range of the packet to send.
    pub packet: Range<usize>,
}

/// Rewrites a client's packet in place for its next hop.
///
/// # Errors
///
/// Fails if the packet is too short or names an unknown hop. The packet is then unchanged; drop it
/// without an answer.
pub fn relay_packet(table: &RelayTable, packet: &mut [u8]) -> Result<RelayedPacket, ProtocolError> {
    let short = |EndOfInput| ProtocolError::Truncated("a packet");
    let mut r = Reader::new(packet);
    let mut ids: [u8; IDS_LEN] = r.array().map_err(short)?;
    let header: [u8; IDENTITY_LEN] = r.array().map_err(short)?;
    if r.rest().len() < BODY_MIN {
        return Err(ProtocolError::Truncated("a packet"));
    }
    let own = header_cipher(&table.identity)?;
    own.decrypt_block(&mut ids);
    let next = table.find_hop(IdentityHash::open_packet(own, &ids, header))?;
    let session = Reader::new(&ids).u64().map_err(short)?;
    let (_, key) = table.next.get(next).ok_or(ProtocolError::Unauthentic)?;
    header_cipher(key)?.encrypt_block(&mut ids);
    let place = packet.get_mut(IDENTITY_LEN..IDENTITY_LEN + IDS_LEN);
    place
        .ok_or(ProtocolError::Unauthentic)?
        .copy_from_slice(&ids);
    Ok(RelayedPacket {
        session,
        next,
        packet: IDENTITY_LEN..packet.len(),
    })
}
