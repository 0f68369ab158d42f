//! Peers as subprocesses, and the small servers and clients that tests place around them.
//!
//! A test starts what it needs on free loopback ports, communicates through it, and drops it;
//! dropping a [`ChildProcess`] ends it. Nothing here shares code with the protocols under test: the
//! SOCKS client, the HTTP server and the DNS server are independent implementations, written from
//! the standards.
//!
//! Start with [`AditProcess`]; the peers are in [`shadowsocks`] and [`ssr`], the test traffic is in
//! [`traffic`].

mod adit;
pub mod bare_kcp;
pub mod cpu_time;
pub mod dns_server;
pub mod dropbear;
pub mod external_tools;
pub mod haproxy;
pub mod hostile_clients;
pub mod http_server;
pub mod iperf;
pub mod kcp_go;
pub mod kcptun;
pub mod lossy_relay;
pub mod openssh;
pub mod origin;
pub mod plugin;
mod ports;
pub mod probe;
mod process;
pub mod recording_relay;
pub mod shadowsocks;
pub mod socks_client;
pub mod ssh_peer;
pub mod ssr;
pub mod store_server;
mod temp_folder;
mod test_pattern;
pub mod traffic;
pub mod unanswering_port;
pub mod unbound;

pub use adit::AditProcess;
pub use ports::{Transport, free_port, loopback_addr, wait_port, wait_socket};
pub use process::ChildProcess;
pub use temp_folder::TempFolder;
pub use test_pattern::{BytePattern, Checksum};

use std::time::Duration;

/// Time that a test waits for anything that should happen immediately, on a busy machine.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);
