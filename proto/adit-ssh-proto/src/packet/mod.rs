//! The binary packet protocol (RFC 4253 section 6): payloads to packets and back.
//!
//! A [`Sealer`] writes one direction, an [`Opener`] reads the other. Both start unencrypted and get
//! [`DirectionKeys`] at each key exchange. A payload is compressed by `deflate` (if negotiated),
//! gets its length and padding, and is then protected by `packet_cipher` and
//! `packet_mac`. Everything but compression happens in the caller's buffer; there is no
//! allocation per packet.
//!
//! ```
//! use adit_ssh_proto::packet::{Opened, Opener, Sealer};
//!
//! let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
//! let mut wire = Vec::new();
//! let start = sealer.begin_packet(&mut wire);
//! wire.extend_from_slice(b"\x02payload"); // written where it is sealed
//! sealer.seal_begun(start, &mut wire).unwrap();
//! let Opened::Packet { consumed, payload } = opener.open(&mut wire).unwrap() else {
//!     panic!("a whole packet was there");
//! };
//! assert_eq!((consumed, opener.payload(&wire, &payload)), (wire.len(), &b"\x02payload"[..]));
//! ```

mod deflate;
mod direction_keys;
mod opener;
mod packet_cipher;
mod packet_counters;
mod packet_mac;
mod padding;
mod sealer;

pub use direction_keys::DirectionKeys;
pub use opener::{Opened, Opener, PayloadPosition};
pub use sealer::Sealer;

/// Maximum `packet_length` sent or accepted, in bytes. RFC 4253 requires 35,000; this is OpenSSH's
/// limit.
pub const MAX_PACKET_LENGTH: usize = 256 * 1024;

/// Maximum length of a payload, in bytes; the rest is reserved for padding. With compression, the
/// limit applies before and after it.
pub const MAX_PAYLOAD: usize = MAX_PACKET_LENGTH - 32;

/// Length of the fields before the payload in bytes: `packet_length` and `padding_length`.
pub const HEAD_LEN: usize = 5;

/// Length of `packet_length`, in bytes.
const LENGTH_LEN: usize = 4;

/// Minimum padding, in bytes.
const MIN_PADDING: usize = 4;

#[cfg(test)]
mod tests;
