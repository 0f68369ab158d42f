//! Loopback ports: free ones, and those that are in use; sockets in the file system.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// First port, below the range from which the kernel takes the ports of outgoing sockets.
const FIRST_PORT: u32 = 10_000;
const PORT_COUNT: u32 = 20_000;

/// Returns a port that is free for TCP and UDP on all addresses; each port is returned once.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + process::id().wrapping_mul(97).wrapping_add(number) % PORT_COUNT;
        let port = u16::try_from(port).unwrap_or_default();
        // A trial socket would occupy the port for a moment after it is closed if another thread
        // forks meanwhile: the child has it too until it executes another program.
        let mut tables = TCP_TABLES.into_iter().chain(UDP_TABLES);
        if !tables.any(|table| socket_states(table, port).next().is_some()) {
            return port;
        }
    }
}

/// Returns the address of this port at 127.0.0.1.
#[must_use]
pub fn loopback_addr(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The transport of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A listening stream socket.
    Tcp,
    /// A bound datagram socket.
    Udp,
}

/// Waits until the port is in use, without connecting to it.
pub fn wait_port(transport: Transport, port: u16, timeout: Duration) -> Result<()> {
    let start = Instant::now();
    while !is_port_used(transport, port) {
        let waited = start.elapsed();
        ensure!(
            waited < timeout,
            "no process has {transport:?} port {port} after {waited:?}"
        );
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Connects to a socket in the file system as soon as a process listens there: its path exists
/// before that.
pub fn wait_socket(path: &Path, timeout: Duration) -> Result<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Ok(socket) => return Ok(socket),
            Err(why) if start.elapsed() > timeout => bail!("{}: {why}", path.display()),
            Err(_) => sleep(Duration::from_millis(10)),
        }
    }
}

fn is_port_used(transport: Transport, port: u16) -> bool {
    // 0A is LISTEN; a bound UDP socket shows 07.
    let (tables, state) = match transport {
        Transport::Tcp => (TCP_TABLES, "0A"),
        Transport::Udp => (UDP_TABLES, "07"),
    };
    let mut tables = tables.into_iter();
    tables.any(|table| socket_states(table, port).any(|one| one == state))
}

// Those of the calling thread's network namespace, which may differ from that of the process.
const TCP_TABLES: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
const UDP_TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// Returns the states of the sockets with this local port.
fn socket_states(table: &str, port: u16) -> impl Iterator<Item = String> {
    let wanted = format!(":{port:04X}");
    let text = fs::read_to_string(table).unwrap_or_default();
    let state = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let local = columns.next()?.ends_with(&wanted);
        columns.nth(1).filter(|_| local).map(str::to_owned)
    };
    let states: Vec<String> = text.lines().skip(1).filter_map(state).collect();
    states.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn ports_are_given_out_once() {
        let ports: std::collections::BTreeSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn a_socket_is_waited_for_until_it_listens() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

        let folder = crate::TempFolder::new("socket").unwrap();
        let path = folder.path().join("socket");
        let short = Duration::from_millis(50);
        assert!(wait_socket(&path, short).is_err());
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(path.exists() && wait_socket(&path, short).is_err());
        listen(&listener, 1).unwrap();
        wait_socket(&path, short).unwrap();
    }

    #[test]
    fn a_taken_port_is_seen() {
        let port = free_port();
        let short = Duration::from_millis(50);
        for transport in [Transport::Tcp, Transport::Udp] {
            assert!(wait_port(transport, port, short).is_err());
        }
        let _tcp = TcpListener::bind(loopback_addr(port)).unwrap();
        wait_port(Transport::Tcp, port, short).unwrap();
        let _udp = UdpSocket::bind(loopback_addr(port)).unwrap();
        wait_port(Transport::Udp, port, short).unwrap();
    }
}
