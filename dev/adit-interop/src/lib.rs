//! Peers as subprocesses, and the small servers and clients that tests place around them.
//!
//! A test starts what it needs on free loopback ports, communicates through it, and drops it;
//! dropping a [`Process`] ends it. Nothing here shares code with the protocols under test: the
//! SOCKS client, the HTTP server and the DNS server are independent implementations, written from
//! the standards.
//!
//! Start with [`Adit`]; the peers are in [`shadowsocks`] and [`ssr`], the test traffic is in
//! [`traffic`].

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

/// Time that a test waits for anything that should happen immediately, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);
