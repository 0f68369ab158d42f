//! ShadowsocksR, sans-IO: the protocol layer alone, and the complete stack except the obfs.
//!
//! ```text
//! target header and stream ─▶ protocol (here) ─▶ stream cipher ─▶ obfs ─▶ TCP
//! target header and packet ─▶ protocol (here) ─▶ stream cipher ─▶ UDP
//! ```
//! Start with [`ClientStack`] or [`ServerStack`], which implement everything above the obfs: target
//! header, protocol and cipher.
//!
//! If you bring your own cipher, start with [`ProtocolClient`] or [`ProtocolServer`]. [`ProtocolClient::connect_codecs`] returns
//! the two codecs of a connection; [`ProtocolServer::new_handshake`] returns a handshake that reads the first
//! message and then returns the codecs. They open decrypted bytes, and seal bytes that you then
//! encrypt, in place. Packets use [`PacketAssociation`], [`ProtocolServer::open_packet`] and
//! [`ProtocolServer::seal_packet`].
//!
//! This crate does not decide how a server reacts to a connection that it refuses: every failure is
//! the same kind of error, and the caller must react to all of them in the same way.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use adit_crypto::StreamKind;
//! use adit_shadowsocksr::{
//!     ClientParam, ClientStack, PACKET_TAIL, ProtocolKind, ReplayStore, ServerParam, ServerStack,
//! };
//! use adit_wire::{FixedEntropy, Target, UnixTime};
//!
//! let (method, password) = (StreamKind::Aes128Ctr, b"password");
//! let kind: ProtocolKind = "auth_aes128_sha1".parse()?;
//! let (now, mut entropy) = (UnixTime(1_800_000_000), FixedEntropy::new(&[7; 64]));
//!
//! // One user, number 42, on both sides.
//! let user = ClientParam::parse(kind, "42:secret")?;
//! let client = ClientStack::new(method, password, kind, user, 0)?;
//! let users = ServerParam::parse(kind, "64#42:secret")?;
//! let replays = Arc::new(ReplayStore::new([7; 16], now));
//! let server = ServerStack::new(method, password, kind.into(), &users, 0, replays)?;
//!
//! // A client seals a datagram in place; the space around the payload is the caller's.
//! let target: Target = "192.0.2.1:53".parse()?;
//! let mut packet = [&[0; 283][..], b"query", &[0; PACKET_TAIL]].concat();
//! let mut association = client.new_association(&mut entropy);
//! let range = association.seal_packet(&mut packet, 283..288, &target, &mut entropy)?;
//!
//! // The server opens it.
//! let datagram = &mut packet[range];
//! let (user, to, payload) = server.open_packet(datagram)?;
//! assert_eq!((user, to), (Some(42), target));
//! assert_eq!(&datagram[payload], b"query");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod chain_padding;
mod client;
mod clock_tolerance;
mod field;
mod frame;
mod head;
mod hello;
mod mac;
mod noise;
mod packet;
mod port;
mod protocol_kind;
mod protocol_param;
mod replay;
mod server;
mod stack;
mod udp_over_tcp;
mod user_key;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use client::{ClientSeal, ProtocolClient};
pub use frame::{FrameOpen, OpenedFrame};
pub use packet::{PACKET_TAIL, PacketAssociation};
pub use protocol_kind::{Protocol, ProtocolKind, UnknownProtocol};
pub use protocol_param::{ClientParam, ParamError, ServerParam};
pub use replay::{ReplayRestoreError, ReplayStore};
pub use server::{AcceptedConnection, ProtocolServer, ServerHandshake, ServerSeal};
pub use stack::{
    ClientCodecs, ClientStack, PacketClient, PacketServer, ServerStack, StackAccepted,
    StackHandshake, StackOpen, StackProgress, StackSeal,
};
pub use udp_over_tcp::{ParsedDatagram, parse_datagram, put_datagram_head};
