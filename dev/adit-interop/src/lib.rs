//! Peers as subprocesses, and the little servers and clients that tests put around them.
//!
//! A test starts what it needs on free loopback ports, talks through it, and drops it; dropping a
//! [`Process`] ends it. Nothing here shares code with the protocols under test: the SOCKS client,
//! the HTTP and the DNS server are second opinions, written from the standards.
//!
//! Start with [`Adit`]; the peers are in [`shadowsocks`] and [`ssr`], the traffic to send in [`traffic`].

mod adit;
pub mod deaf;
pub mod dns;
pub mod dropbear;
mod folder;
pub mod haproxy;
pub mod hostile;
pub mod iperf;
pub mod kcpcore;
pub mod kcpgo;
pub mod kcptun;
pub mod lossy;
pub mod openssh;
pub mod origin;
mod pattern;
pub mod plugin;
mod port;
pub mod probe;
mod process;
pub mod shadowsocks;
pub mod socks;
pub mod sshpeer;
pub mod ssr;
pub mod tap;
pub mod tool;
pub mod traffic;
pub mod web;

pub use adit::Adit;
pub use folder::Folder;
pub use pattern::{Pattern, Sum};
pub use port::{Transport, free_port, loopback, wait_port, wait_socket};
pub use process::Process;

use std::time::Duration;

/// How long a test waits for anything that should come at once, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);
