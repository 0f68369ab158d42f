//! Binding of one port for TCP, UDP or both.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use adit_config::{InterceptMethod, TransparentListener};
use adit_net::dial::{self, Family};
use adit_net::tcp::FastOpen;
use adit_net::{BatchUdpSocket, tcp, transparent};
use adit_wire::Host;
use tokio::time::sleep;

use crate::handover::{SocketHandle, SocketKind, SocketSource};
use crate::udp::InterceptedDatagrams;

/// Number of attempts to find a port that is free for TCP and UDP.
const PORT_TRIES: usize = 16;

/// The sockets of a port.
pub(crate) struct PortSockets {
    pub(crate) addr: SocketAddr,
    pub(crate) tcp: Option<tokio::net::TcpListener>,
    /// The UDP sockets: one per core, if the listener's associations are independent.
    pub(crate) udp: Vec<BatchUdpSocket>,
    /// The kinds of the TCP socket and the UDP sockets.
    kinds: [SocketKind; 2],
}

/// The sockets of a port that receives intercepted traffic.
pub(crate) struct TransparentSockets {
    pub(crate) addr: SocketAddr,
    pub(crate) tcp: Option<tokio::net::TcpListener>,
    pub(crate) udp: Option<InterceptedDatagrams>,
    /// Further descriptors of the sockets, for a successor.
    pub(crate) handles: Vec<SocketHandle>,
}

/// Resolves `host` and `port` to an address, for a program that binds it itself.
pub(crate) async fn resolve_listen_addr(host: &Option<Host>, port: u16) -> io::Result<SocketAddr> {
    match host {
        Some(Host::Ip(ip)) => Ok(SocketAddr::new(*ip, port)),
        Some(Host::Name(name)) => dial::resolve(name.as_str(), port, Family::V4First)
            .await?
            .first()
            .copied()
            .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into()),
        // Both address families, where available.
        None if BatchUdpSocket::bind(SocketAddr::from(([0u16; 8], 0))).is_ok() => {
            Ok(SocketAddr::from(([0u16; 8], port)))
        }
        None => Ok(SocketAddr::from(([0u8; 4], port))),
    }
}

/// The kinds of the sockets of a public port.
const PUBLIC: [SocketKind; 2] = [SocketKind::Tcp, SocketKind::Udp];
/// The kinds of the sockets behind a plugin.
const BEHIND_PLUGIN: [SocketKind; 2] = [SocketKind::PluginTcp, SocketKind::PluginUdp];

/// Binds one port for TCP, for UDP with `udp` sockets, or for both.
pub(crate) async fn bind_port(
    host: &Option<Host>,
    port: u16,
    tcp: Option<FastOpen>,
    udp: usize,
    source: SocketSource<'_>,
) -> io::Result<PortSockets> {
    let bind = |addr| try_bind(addr, PUBLIC, tcp, udp, source);
    bind_port_with(host, port, bind).await
}

/// Binds a port of 127.0.0.1 for a plugin, as [`bind_port`] does.
pub(crate) async fn bind_behind_plugin(
    port: u16,
    tcp: Option<FastOpen>,
    udp: usize,
    source: SocketSource<'_>,
) -> io::Result<PortSockets> {
    let here = Some(Host::Ip(Ipv4Addr::LOCALHOST.into()));
    let bind = |addr| try_bind(addr, BEHIND_PLUGIN, tcp, udp, source);
    bind_port_with(&here, port, bind).await
}

/// Binds one port for intercepted traffic.
pub(crate) async fn bind_transparent(
    host: &Option<Host>,
    port: u16,
    plan: &TransparentListener,
    source: SocketSource<'_>,
) -> io::Result<TransparentSockets> {
    bind_port_with(host, port, |addr| try_bind_transparent(addr, plan, source)).await
}

/// Binds one port for the sockets that `open` creates.
pub(crate) async fn bind_port_with<T>(
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

impl PortSockets {
    /// Duplicates the sockets for a successor.
    pub(crate) fn handles(&self) -> io::Result<Vec<SocketHandle>> {
        let [tcp, udp] = self.kinds;
        let mut handles = Vec::new();
        if let Some(socket) = &self.tcp {
            handles.push(SocketHandle::of(tcp, self.addr, socket)?);
        }
        for socket in &self.udp {
            handles.push(SocketHandle::of(udp, self.addr, socket)?);
        }
        Ok(handles)
    }
}

fn try_bind(
    mut addr: SocketAddr,
    kinds: [SocketKind; 2],
    tcp: Option<FastOpen>,
    udp: usize,
    source: SocketSource<'_>,
) -> io::Result<PortSockets> {
    let [tcp_kind, udp_kind] = kinds;
    let tcp = match tcp {
        None => None,
        Some(fast_open) => Some(match source.take_tcp(tcp_kind, addr)? {
            Some(socket) => tcp::continue_listening(socket, fast_open)?,
            None => tcp::listen_with_fast_open(addr, fast_open)?,
        }),
    };
    if let Some(socket) = &tcp {
        addr = socket.local_addr()?;
    }
    let udp = match udp {
        0 => Vec::new(),
        count => match source.take_udp(udp_kind, addr, count)? {
            inherited if inherited.is_empty() => BatchUdpSocket::bind_shared(addr, count)?,
            inherited => {
                let sockets = inherited.into_iter().map(BatchUdpSocket::from_std);
                sockets.collect::<io::Result<_>>()?
            }
        },
    };
    if let (None, Some(socket)) = (&tcp, udp.first()) {
        addr = SocketAddr::new(addr.ip(), socket.local_addr()?.port());
    }
    Ok(PortSockets {
        addr,
        tcp,
        udp,
        kinds,
    })
}

fn try_bind_transparent(
    addr: SocketAddr,
    plan: &TransparentListener,
    source: SocketSource<'_>,
) -> io::Result<TransparentSockets> {
    let kind = match plan.method {
        InterceptMethod::Redirect => SocketKind::Tcp,
        InterceptMethod::Tproxy => SocketKind::TproxyTcp,
    };
    let mut handles = Vec::new();
    let mut tcp = None;
    if plan.tcp {
        let socket = match (source.take_tcp(kind, addr)?, plan.method) {
            (Some(socket), _) => tcp::continue_listening(socket, FastOpen::Off)?,
            (None, InterceptMethod::Redirect) => transparent::listen_redirected(addr)?,
            (None, InterceptMethod::Tproxy) => transparent::listen(addr)?,
        };
        handles.push(SocketHandle::of(kind, addr, &socket)?);
        tcp = Some(socket);
    }
    let udp = if plan.udp {
        let kind = SocketKind::TproxyUdp;
        let socket = match source.take_udp(kind, addr, 1)?.pop() {
            Some(socket) => transparent::TproxyUdp::from_std(socket)?,
            None => transparent::TproxyUdp::bind(addr)?,
        };
        handles.push(SocketHandle::of(kind, addr, &socket)?);
        Some(InterceptedDatagrams::new(
            socket,
            addr.port(),
            plan.full_cone,
        ))
    } else {
        None
    };
    Ok(TransparentSockets {
        addr,
        tcp,
        udp,
        handles,
    })
}
