//! The load: the data that is sent through a relay, and the origin behind it.
//!
//! It uses blocking threads in this process, so that nothing between them and the kernel costs more
//! than necessary. Every byte is counted; see [`content`] for the comparison.

pub(crate) mod connections;
pub(crate) mod content;
pub(crate) mod in_flight;
pub(crate) mod in_step;
pub(crate) mod latency;
pub(crate) mod origin;
pub(crate) mod tcp;
pub(crate) mod udp;

use std::fmt;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use adit_interop::socks_client::{self, Destination};
use adit_interop::{TEST_TIMEOUT, traffic};
use anyhow::{Context, Result, ensure};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

/// The route to the origin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OriginRoute {
    /// A port that leads there, or the origin itself.
    Entry(SocketAddr),
    /// SOCKS5 CONNECT.
    Socks { proxy: SocketAddr, to: SocketAddr },
    /// The same with a name and a password.
    Login {
        proxy: SocketAddr,
        to: SocketAddr,
        login: (&'static str, &'static str),
    },
}

impl OriginRoute {
    /// Opens a stream to the origin, whose reads and writes fail after a long silence.
    pub(crate) fn dial(self) -> Result<TcpStream> {
        match self {
            Self::Entry(addr) => traffic::connect_directly(addr),
            Self::Socks { proxy, to } => {
                socks_client::connect_through(proxy, None, &Destination::Addr(to))
            }
            Self::Login { proxy, to, login } => {
                socks_client::connect_through(proxy, Some(login), &Destination::Addr(to))
            }
        }
    }

    /// Opens a stream that leaves from `lane` and, if the client names the destination, leads to
    /// the origin's port at that address. It ends with a reset, which frees its port immediately.
    fn dial_from(self, lane: Ipv4Addr) -> Result<TcpStream> {
        match self {
            Self::Entry(addr) => dial_from(lane, addr),
            Self::Socks { proxy, to } | Self::Login { proxy, to, .. } => {
                let login = match self {
                    Self::Login { login, .. } => Some(login),
                    _ => None,
                };
                let mut stream = dial_from(lane, proxy)?;
                socks_client::authenticate(&mut stream, login)?;
                let to = Destination::Addr((lane, to.port()).into());
                stream.write_all(&socks_client::encode_request(socks_client::CONNECT, &to))?;
                let reply = socks_client::read_reply(&mut stream)?;
                ensure!(
                    reply.code == 0,
                    "the proxy refused with code {:#04x}",
                    reply.code
                );
                Ok(stream)
            }
        }
    }
}

fn dial_from(lane: Ipv4Addr, to: SocketAddr) -> Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddr::from((lane, 0)))
        .with_context(|| format!("cannot bind to {lane}"))?;
    let stream = TcpStream::from(socket);
    // This also limits the time of connecting.
    stream.set_write_timeout(Some(TEST_TIMEOUT))?;
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    stream.set_nodelay(true)?;
    set_socket_linger(&stream, Some(Duration::ZERO))?;
    connect(&stream, &to).with_context(|| to.to_string())?;
    Ok(stream)
}

/// The direction of the payload, as seen by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadDirection {
    /// To the origin.
    Up,
    /// From the origin.
    Down,
}

impl LoadDirection {
    pub(crate) const BOTH: [Self; 2] = [Self::Up, Self::Down];
}

impl fmt::Display for LoadDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
        })
    }
}
