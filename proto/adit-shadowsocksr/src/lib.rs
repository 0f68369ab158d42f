//! ShadowsocksR, sans-IO: the protocol layer alone, and the complete stack except the obfs.
//!
//! ```text
//! target header and stream ─▶ protocol (here) ─▶ stream cipher ─▶ obfs ─▶ TCP
//! target header and packet ─▶ protocol (here) ─▶ stream cipher ─▶ UDP
//! ```
//! Start with [`ClientStack`] or [`ServerStack`], which implement everything above the obfs: target
//! header, protocol and cipher.
//!
//! If you bring your own cipher, start with [`Client`] or [`Server`]. [`Client::connect`] returns
//! the two codecs of a connection; [`Server::accept`] returns a handshake that reads the first
//! message and then returns the codecs. They open decrypted bytes, and seal bytes that you then
//! encrypt, in place. Packets use [`Association`], [`Server::open_packet`] and
//! [`Server::seal_packet`].
//!
//! This crate does not decide how a server reacts to a connection that it refuses: every failure is
//! the same kind of error, and the caller must react to all of them in the same way.

#![forbid(unsafe_code)]

mod chain;
mod client;
mod field;
mod frame;
mod head;
mod hello;
mod kind;
mod mac;
mod noise;
mod over_tcp;
mod packet;
mod param;
mod port;
mod replay;
mod server;
mod stack;
mod stamp;
mod user;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use client::{Client, ClientSeal};
pub use frame::{Frame, FrameOpen};
pub use kind::{Protocol, ProtocolKind, UnknownProtocol};
pub use over_tcp::{Datagram, parse_datagram, put_datagram_head};
pub use packet::{Association, PACKET_TAIL};
pub use param::{ClientParam, ParamError, ServerParam};
pub use replay::ReplayStore;
pub use server::{Accepted, Server, ServerHandshake, ServerSeal};
pub use stack::{
    ClientStack, PacketClient, PacketServer, Progress, ServerStack, StackAccepted, StackClient,
    StackHandshake, StackOpen, StackSeal,
};
