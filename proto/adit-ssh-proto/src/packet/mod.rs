//! The binary packet protocol (RFC 4253 section 6): payloads in, packets out, and back.
//!
//! A [`Sealer`] writes one direction, an [`Opener`] reads the other; both begin in the clear and
//! get [`DirectionKeys`] at each key exchange. A payload goes through `deflate` (if negotiated),
//! gets its length and padding, and then through `cover`: the cipher and what authenticates it.
//! Everything but compression happens in the caller's buffer; nothing is allocated per packet.
//!
//! ```
//! use adit_ssh_proto::packet::{Opened, Opener, Sealer};
//!
//! let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
//! let mut wire = Vec::new();
//! let start = sealer.begin(&mut wire);
//! wire.extend_from_slice(b"\x02payload"); // written where it is sealed
//! sealer.finish(start, &mut wire).unwrap();
//! let Opened::Packet { consumed, payload } = opener.open(&mut wire).unwrap() else {
//!     panic!("a whole packet was there");
//! };
//! assert_eq!((consumed, opener.payload(&wire, &payload)), (wire.len(), &b"\x02payload"[..]));
//! ```

mod count;
mod cover;
mod deflate;
mod keys;
mod mac;
mod open;
mod padding;
mod seal;

pub use keys::DirectionKeys;
pub use open::{Opened, Opener, Payload};
pub use seal::Sealer;

/// The largest `packet_length`, in octets, that is sent or accepted. RFC 4253 asks for 35,000;
/// this is OpenSSH's bound.
pub const MAX_PACKET_LENGTH: usize = 256 * 1024;

/// The longest payload, in octets: room is left for the padding. With compression it is the bound
/// of the payload before and after.
pub const MAX_PAYLOAD: usize = MAX_PACKET_LENGTH - 32;

/// Octets of a packet before its payload: `packet_length` and `padding_length`.
pub const HEAD_LEN: usize = 5;

/// Octets of `packet_length`.
const LENGTH_LEN: usize = 4;

/// The least padding, in octets.
const MIN_PADDING: usize = 4;

#[cfg(test)]
mod tests;
