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

#![forbid(unsafe_code)]

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
pub use replay::ReplayStore;
pub use server::{AcceptedConnection, ProtocolServer, ServerHandshake, ServerSeal};
pub use stack::{
    ClientCodecs, ClientStack, PacketClient, PacketServer, ServerStack, StackAccepted,
    StackHandshake, StackOpen, StackProgress, StackSeal,
};
pub use udp_over_tcp::{ParsedDatagram, parse_datagram, put_datagram_head};
