//! What adit asks of the kernel, in one crate.
//!
//! Sockets with the options the project agreed on ([`tcp`], [`udp`]), an accept loop that survives
//! descriptor exhaustion ([`accept`]), pipes for bytes that stay in the kernel ([`splice`]), traffic
//! that was meant for others ([`transparent`]), names and the race between addresses ([`dial`]), the
//! wall clock, the monotonic clock and chance ([`ambient`]), the descriptor limit ([`limits`]).
//! It knows no protocol.

pub mod accept;
pub mod ambient;
pub mod dial;
pub mod limits;
pub mod packet;
pub mod splice;
pub mod tcp;
pub mod transparent;
pub mod udp;

pub use packet::PacketBuf;
pub use udp::Udp;
