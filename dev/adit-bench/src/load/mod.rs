//! The load: what is sent through a relay, and the origin behind it.
//!
//! Blocking threads in this process, so that nothing between them and the kernel costs more than
//! it must. Every byte is counted; see [`content`] for what is compared.

pub(crate) mod connections;
pub(crate) mod content;
pub(crate) mod flight;
pub(crate) mod origin;
pub(crate) mod tcp;
pub(crate) mod udp;

use std::fmt;
use std::net::{SocketAddr, TcpStream};

use adit_interop::socks::{self, Dest};
use adit_interop::traffic;
use anyhow::Result;

/// The way to the origin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// A port that leads there, or the origin itself.
    Entry(SocketAddr),
    /// SOCKS5 CONNECT.
    Socks { proxy: SocketAddr, to: SocketAddr },
}

impl Way {
    /// A stream to the origin; reads and writes on it fail after a long silence.
    pub(crate) fn dial(self) -> Result<TcpStream> {
        match self {
            Self::Entry(addr) => traffic::dial(addr),
            Self::Socks { proxy, to } => socks::connect(proxy, None, &Dest::Addr(to)),
        }
    }
}

/// Which way the payload goes, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the origin.
    Up,
    /// From the origin.
    Down,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Up, Self::Down];
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
        })
    }
}
