//! ShadowsocksR, sans-IO: the protocol layer, and the whole but the obfs.
//!
//! ```text
//! target header and stream ─▶ protocol (here) ─▶ stream cipher ─▶ obfs ─▶ TCP
//! target header and packet ─▶ protocol (here) ─▶ stream cipher ─▶ UDP
//! ```
//! Start with [`ClientStack`] or [`ServerStack`], which have everything above the obfs: target
//! header, protocol and cipher.
//!
//! Those who bring their own cipher start with [`Client`] or [`Server`]. [`Client::connect`] gives
//! the two codecs of a connection; [`Server::accept`] a handshake that reads the first message and
//! then gives them. They open deciphered bytes and seal what is to be enciphered, in place.
//! Packets go through [`Association`], [`Server::open_packet`] and [`Server::seal_packet`].
//!
//! What a server does with a connection it refuses is not decided here: every failure is an error
//! of one kind to the caller, who reacts the same way to all of them.

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
