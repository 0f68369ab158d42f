//! Binding of one port for TCP, UDP or both.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use adit_config::{Steering, Transparent};
use adit_net::dial::{self, Family};
use adit_net::tcp::FastOpen;
use adit_net::{Udp, tcp, transparent};
use adit_wire::Host;
use tokio::time::sleep;

use crate::udp::Interception;

/// Number of attempts to find a port that is free for TCP and UDP.
const PORT_TRIES: usize = 16;

/// The sockets of a port.
pub(crate) struct Sockets {
    pub(crate) addr: SocketAddr,
    pub(crate) tcp: Option<tokio::net::TcpListener>,
    /// The UDP sockets: one per core, if the listener's associations are independent.
    pub(crate) udp: Vec<Udp>,
}

/// The sockets of a port that receives intercepted traffic.
pub(crate) struct TransparentSockets {
    pub(crate) addr: SocketAddr,
    pub(crate) tcp: Option<tokio::net::TcpListener>,
    pub(crate) udp: Option<Interception>,
}

/// Resolves `host` and `port` to an address, for a program that binds it itself.
pub(crate) async fn address(host: &Option<Host>, port: u16) -> io::Result<SocketAddr> {
    match host {
        Some(Host::Ip(ip)) => Ok(SocketAddr::new(*ip, port)),
        Some(Host::Name(name)) => dial::resolve(name.as_str(), port, Family::V4First)
            .await?
            .first()
            .copied()
            .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into()),
        // Both address families, where available.
        None if Udp::bind(SocketAddr::from(([0u16; 8], 0))).is_ok() => {
            Ok(SocketAddr::from(([0u16; 8], port)))
        }
        None => Ok(SocketAddr::from(([0u8; 4], port))),
    }
}

/// Binds one port for TCP, for UDP with `udp` sockets, or for both.
pub(crate) async fn bind(
    host: &Option<Host>,
    port: u16,
    tcp: Option<FastOpen>,
    udp: usize,
) -> io::Result<Sockets> {
    bind_by(host, port, |addr| bind_once(addr, tcp, udp)).await
}

/// Binds one port for intercepted traffic.
pub(crate) async fn bind_transparent(
    host: &Option<Host>,
    port: u16,
    plan: &Transparent,
) -> io::Result<TransparentSockets> {
    bind_by(host, port, |addr| take_once(addr, plan)).await
}

/// Binds one port for the sockets that `open` creates.
pub(crate) async fn bind_by<T>(
    host: &Option<Host>,
    port: u16,
    open: impl Fn(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let candidates: Vec<SocketAddr> = match host {
        // One socket for both families; IPv4 only where IPv6 is unavailable.
        None => vec![
            SocketAddr::from(([0u16; 8], port)),
            SocketAddr::from(([0u8; 4], port)),
        ],
        Some(Host::Ip(ip)) => vec![SocketAddr::new(*ip, port)],
        Some(Host::Name(name)) => dial::resolve(name.as_str(), port, Family::V4First)
            .await?
            .into_iter()
            .take(1)
            .collect(),
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for addr in candidates {
        for _ in 0..PORT_TRIES {
            match open(addr) {
                Ok(sockets) => return Ok(sockets),
                Err(e) => last = e,
            }
            // Only an ephemeral port can be different at the next attempt.
            if port != 0 || last.kind() != io::ErrorKind::AddrInUse {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        if last.kind() == io::ErrorKind::AddrInUse {
            break;
        }
    }
    Err(last)
}

fn bind_once(mut addr: SocketAddr, tcp: Option<FastOpen>, udp: usize) -> io::Result<Sockets> {
    let tcp = match tcp {
        None => None,
        Some(fast_open) => Some(tcp::listen_by(addr, fast_open)?),
    };
    if let Some(socket) = &tcp {
        addr = socket.local_addr()?;
    }
    let udp = match udp {
        0 => Vec::new(),
        count => Udp::bind_shared(addr, count)?,
    };
    if let (None, Some(socket)) = (&tcp, udp.first()) {
        addr = SocketAddr::new(addr.ip(), socket.local_addr()?.port());
    }
    Ok(Sockets { addr, tcp, udp })
}

fn take_once(addr: SocketAddr, plan: &Transparent) -> io::Result<TransparentSockets> {
    let tcp = match plan.steering {
        _ if !plan.tcp => None,
        Steering::Redirect => Some(transparent::listen_redirected(addr)?),
        Steering::Tproxy => Some(transparent::listen(addr)?),
    };
    let udp = if plan.udp {
        let socket = transparent::Taken::bind(addr)?;
        Some(Interception::new(socket, addr.port(), plan.full_cone))
    } else {
        None
    };
    Ok(TransparentSockets { addr, tcp, udp })
}
