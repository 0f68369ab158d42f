//! The operating-system interface of adit.
//!
//! This crate has:
//!
//! * TCP and UDP sockets with the project's options ([`tcp`], [`udp`], [`packet`]), and TCP sockets that
//!   are watched only while a reader waits ([`on_demand`]);
//! * an accept loop that survives descriptor exhaustion ([`accept`]);
//! * pipes for bytes that stay in the kernel ([`splice`]), watermarks that wake a reader once for much data
//!   ([`watermark`]), and urgent data ([`urgent`]);
//! * traffic that was meant for other addresses ([`transparent`]), and the outgoing interface
//!   ([`outbound`]);
//! * name resolution ([`names`]) and the race between addresses ([`dial`]);
//! * clocks and random generators ([`system`]), the descriptor limit ([`limits`]) and memory to return to
//!   the system ([`memory`]);
//! * the handover of sockets to a new process (`handover`, on Linux), and listeners at named pipes (`named_pipe`, on
//!   Windows);
//! * child processes that do not outlive adit, with terminals for them ([`child`]), and files that do
//!   outlive it (`persistent_file`).
//!
//! It implements no protocol.
//!
//! # Examples
//!
//! ```no_run
//! use adit_net::dial::{self, Family};
//! use std::time::Duration;
//!
//! # async fn example() -> std::io::Result<()> {
//! // All addresses of a name, raced as RFC 8305 describes.
//! let addresses = dial::resolve("example.test", 443, Family::Any).await?;
//! let stream = dial::connect_first(&addresses, Duration::from_secs(10)).await?;
//! println!("connected to {}", stream.peer_addr()?);
//! # Ok(())
//! # }
//! ```

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod accept;
#[cfg(any(unix, windows))]
#[cfg_attr(windows, path = "child_on_windows/mod.rs")]
pub mod child;
pub mod dial;
#[cfg(target_os = "linux")]
pub mod handover;
pub mod limits;
pub mod memory;
#[cfg(windows)]
pub mod named_pipe;
pub mod names;
pub mod on_demand;
pub mod outbound;
pub mod packet;
pub mod persistent_file;
#[cfg(target_os = "linux")]
mod socket_option;
pub mod splice;
pub mod system;
pub mod tcp;
pub mod transparent;
pub mod udp;
pub mod urgent;
pub mod watermark;

pub use packet::PacketBuf;
pub use udp::{BatchUdpSocket, BufferSizes, ReceivedRun};
