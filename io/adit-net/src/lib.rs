//! The operating-system interface of adit.
//!
//! This crate has:
//!
//! * TCP and UDP sockets with the project's options ([`tcp`], [`udp`], [`packet`]), and TCP sockets that
//!   are watched only while a reader waits ([`asked`]);
//! * an accept loop that survives descriptor exhaustion ([`accept`]);
//! * pipes for bytes that stay in the kernel ([`splice`]), watermarks that wake a reader once for much data
//!   ([`lowat`]), and urgent data ([`urgent`]);
//! * traffic that was meant for other addresses ([`transparent`]), and the outgoing interface
//!   ([`outbound`]);
//! * name resolution ([`names`]) and the race between addresses ([`dial`]);
//! * clocks and random generators ([`ambient`]), the descriptor limit ([`limits`]) and memory to return to
//!   the system ([`memory`]);
//! * child processes that do not outlive adit, with terminals for them ([`child`]), and files that do
//!   outlive it ([`keep`]).
//!
//! It implements no protocol.

pub mod accept;
pub mod ambient;
pub mod asked;
#[cfg(unix)]
pub mod child;
pub mod dial;
pub mod keep;
pub mod limits;
pub mod lowat;
pub mod memory;
pub mod names;
#[cfg(target_os = "linux")]
mod option;
pub mod outbound;
pub mod packet;
pub mod splice;
pub mod tcp;
pub mod transparent;
pub mod udp;
pub mod urgent;

pub use packet::PacketBuf;
pub use udp::{Buffers, Received, Udp};
