//! What adit asks of the kernel, in one crate.
//!
//! Sockets with the options the project agreed on ([`tcp`], [`udp`]), an accept loop that survives
//! descriptor exhaustion ([`accept`]), pipes for bytes that stay in the kernel ([`splice`]), sockets that are
//! watched only while somebody waits ([`asked`]), a mark
//! that wakes a reader once for much ([`lowat`]), urgent data ([`urgent`]), traffic that was meant for others
//! ([`transparent`]), names ([`names`]) the race between addresses ([`dial`]) and the
//! interface that is left by ([`outbound`]), the wall clock, the monotonic
//! clock and chance ([`ambient`]), the descriptor limit ([`limits`]), memory that others
//! could use ([`memory`]), child processes that do not
//! outlive us, and terminals for them ([`child`]), files that do ([`keep`]).
//! It knows no protocol.

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
