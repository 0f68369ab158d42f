//! Sockets that a running process hands over to its successor.
//!
//! The listeners of an engine keep a second descriptor of each of their sockets, which
//! [`Engine::export_sockets`](crate::Engine::export_sockets) returns. The engine of the new process is started with
//! [`InheritedSockets`]: a listener continues the socket of its address, if there is one, instead of binding.

use std::net::{SocketAddr, TcpListener, UdpSocket};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::sync::MutexGuard;
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use adit_net::BatchUdpSocket;
#[cfg(target_os = "linux")]
use adit_net::handover::HandedOverUdp;
use tokio::sync::oneshot;
#[cfg(target_os = "linux")]
use tracing::warn;

#[cfg(target_os = "linux")]
use crate::plugin::HandedOverPlugin;

/// The kind of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    /// A listening TCP socket.
    Tcp,
    /// A UDP socket.
    Udp,
    /// A listening TCP socket on loopback, behind a plugin.
    PluginTcp,
    /// A UDP socket on loopback, behind a plugin.
    PluginUdp,
    /// A listening TCP socket for connections to any address (`TPROXY`).
    TproxyTcp,
    /// A UDP socket for datagrams to any address (`TPROXY`).
    TproxyUdp,
}

impl SocketKind {
    const NAMES: [(Self, &'static str); 6] = [
        (Self::Tcp, "tcp"),
        (Self::Udp, "udp"),
        (Self::PluginTcp, "plugin-tcp"),
        (Self::PluginUdp, "plugin-udp"),
        (Self::TproxyTcp, "tproxy-tcp"),
        (Self::TproxyUdp, "tproxy-udp"),
    ];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind)
    }
}

/// A socket of a listener.
#[derive(Debug)]
pub struct HandoverSocket {
    /// The name of the listener's route.
    pub route: String,
    /// The number of the listener in its route, starting at 0.
    pub listener: usize,
    /// The kind of the socket.
    pub kind: SocketKind,
    /// The address that the socket is bound to.
    pub addr: SocketAddr,
    /// A descriptor of the socket.
    #[cfg(target_os = "linux")]
    pub fd: OwnedFd,
}

/// The error of a listener that cannot be handed over.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The system refused another descriptor.
    #[error("cannot hand over the sockets on {addr}: {why}")]
    Descriptor {
        /// The address of the listener.
        addr: SocketAddr,
        /// The error of the system.
        why: io::Error,
    },
    /// The system refused another descriptor of a plugin.
    #[error("cannot hand over the plugin that listens on {addr}: {why}")]
    Plugin {
        /// The address of the listener.
        addr: SocketAddr,
        /// The error of the system.
        why: io::Error,
    },
}

/// A second descriptor of a listener's socket.
pub(crate) struct SocketHandle {
    pub(crate) kind: SocketKind,
    pub(crate) addr: SocketAddr,
    #[cfg(target_os = "linux")]
    fd: OwnedFd,
}

impl SocketHandle {
    /// Duplicates the descriptor of a socket that is bound to `addr`.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(kind: SocketKind, addr: SocketAddr, socket: &impl AsFd) -> io::Result<Self> {
        let fd = socket.as_fd().try_clone_to_owned()?;
        Ok(Self { kind, addr, fd })
    }

    /// Records a socket, which cannot be handed over on this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of<T>(kind: SocketKind, addr: SocketAddr, _: &T) -> io::Result<Self> {
        Ok(Self { kind, addr })
    }

    /// Duplicates the descriptor for a successor.
    pub(crate) fn export(&self, route: &str, listener: usize) -> io::Result<HandoverSocket> {
        Ok(HandoverSocket {
            route: route.to_owned(),
            listener,
            kind: self.kind,
            addr: self.addr,
            #[cfg(target_os = "linux")]
            fd: self.fd.try_clone()?,
        })
    }
}

impl fmt::Debug for SocketHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.addr)
    }
}

/// The sockets of the process that this one succeeds, and the plugins before them. Sockets that no listener takes are
/// closed when it is dropped.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    sockets: Mutex<Vec<HandoverSocket>>,
    #[cfg(target_os = "linux")]
    plugins: Mutex<Vec<HandedOverPlugin>>,
}

impl InheritedSockets {
    /// Creates the set of sockets that listeners may continue.
    #[must_use]
    pub fn new(sockets: Vec<HandoverSocket>) -> Self {
        Self {
            sockets: Mutex::new(sockets),
            ..Self::default()
        }
    }

    /// Adds the plugins of listeners.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn with_plugins(self, plugins: Vec<HandedOverPlugin>) -> Self {
        Self {
            plugins: Mutex::new(plugins),
            ..self
        }
    }

    /// Takes the plugins that no listener has taken.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_plugins(&self) -> Vec<HandedOverPlugin> {
        std::mem::take(&mut *self.lock_plugins())
    }

    /// Takes the plugin that listens on this address.
    #[cfg(target_os = "linux")]
    fn take_plugin(&self, public: SocketAddr) -> Option<HandedOverPlugin> {
        let mut plugins = self.lock_plugins();
        let at = plugins.iter().position(|plugin| plugin.public == public)?;
        Some(plugins.remove(at))
    }

    #[cfg(target_os = "linux")]
    fn lock_plugins(&self) -> MutexGuard<'_, Vec<HandedOverPlugin>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first socket that `is_it` accepts.
    fn take(&self, is_it: impl Fn(&HandoverSocket) -> bool) -> Option<HandoverSocket> {
        let sockets = self.sockets.lock();
        let mut sockets = sockets.unwrap_or_else(PoisonError::into_inner);
        let at = sockets.iter().position(is_it)?;
        Some(sockets.remove(at))
    }
}

/// The UDP sockets that the predecessor of a process has handed over, with the peers that it still serves.
#[derive(Debug, Default)]
pub struct SharedSockets(#[cfg(target_os = "linux")] Vec<HandedOverUdp>);

impl SharedSockets {
    /// Returns the sockets.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn into_vec(self) -> Vec<HandedOverUdp> {
        self.0
    }

    /// Adds a socket.
    #[cfg(target_os = "linux")]
    pub fn push(&mut self, socket: HandedOverUdp) {
        self.0.push(socket);
    }

    /// Returns the socket that forwards the datagrams of the predecessor's peers, or `socket` itself if the
    /// predecessor serves none on it.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_for(&mut self, socket: BatchUdpSocket) -> BatchUdpSocket {
        let Some(cookie) = socket_cookie(socket.as_fd()) else {
            return socket;
        };
        let same = |shared: &HandedOverUdp| socket_cookie(shared.socket.as_fd()) == Some(cookie);
        let Some(at) = self.0.iter().position(same) else {
            return socket;
        };
        match BatchUdpSocket::continue_from(self.0.remove(at)) {
            Ok(shared) => shared,
            Err(why) => {
                warn!("the sessions of the former process on a UDP socket end: {why}");
                socket
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn take_for(&mut self, socket: BatchUdpSocket) -> BatchUdpSocket {
        socket
    }
}

/// Takes a socket that its task hands over to another process.
#[cfg(feature = "kcp")]
pub(crate) type SharedSocketReply = oneshot::Sender<io::Result<SharedSocket>>;
/// Returns a socket that its task hands over. The error means that the task has ended.
#[cfg(target_os = "linux")]
pub(crate) type SharedSocketAnswer = oneshot::Receiver<io::Result<SharedSocket>>;

/// A socket that is handed over to another process, with the peers that this one still serves.
#[cfg(target_os = "linux")]
pub(crate) type SharedSocket = HandedOverUdp;
/// A socket that is handed over; there is none on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) type SharedSocket = std::convert::Infallible;

/// Returns the number of a socket, which is the same for all of its descriptors.
#[cfg(target_os = "linux")]
fn socket_cookie(socket: BorrowedFd<'_>) -> Option<u64> {
    rustix::net::sockopt::socket_cookie(socket).ok()
}

/// The inherited sockets that one listener may continue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketSource<'a> {
    inherited: Option<&'a InheritedSockets>,
    route: &'a str,
    listener: usize,
}

impl<'a> SocketSource<'a> {
    /// The source of a listener that inherits nothing.
    pub(crate) const NONE: SocketSource<'static> = SocketSource {
        inherited: None,
        route: "",
        listener: 0,
    };

    /// Creates the source of the listener with this number in its route.
    pub(crate) const fn new(
        inherited: Option<&'a InheritedSockets>,
        route: &'a str,
        listener: usize,
    ) -> Self {
        Self {
            inherited,
            route,
            listener,
        }
    }

    /// Takes the socket that is bound to `addr`; if its port is 0, the one that the same listener had.
    fn take(&self, kind: SocketKind, addr: SocketAddr) -> Option<HandoverSocket> {
        let (route, listener) = (self.route, self.listener);
        self.inherited?.take(|socket| {
            socket.kind == kind
                && match addr.port() {
                    0 => {
                        socket.addr.ip() == addr.ip()
                            && socket.route == route
                            && socket.listener == listener
                    }
                    _ => socket.addr == addr,
                }
        })
    }

    /// Takes the plugin that listens on this address.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_plugin(&self, public: SocketAddr) -> Option<HandedOverPlugin> {
        self.inherited?.take_plugin(public)
    }

    /// Takes the TCP socket of this kind that is bound to `addr`.
    ///
    /// # Errors
    /// The inherited descriptor is not such a socket.
    pub(crate) fn take_tcp(
        &self,
        kind: SocketKind,
        addr: SocketAddr,
    ) -> io::Result<Option<TcpListener>> {
        self.take(kind, addr).map(continue_tcp).transpose()
    }

    /// Takes up to `count` UDP sockets of this kind that are bound to `addr`.
    ///
    /// # Errors
    /// An inherited descriptor is not such a socket.
    pub(crate) fn take_udp(
        &self,
        kind: SocketKind,
        addr: SocketAddr,
        count: usize,
    ) -> io::Result<Vec<UdpSocket>> {
        let next = || self.take(kind, addr).map(continue_udp);
        std::iter::from_fn(next).take(count).collect()
    }
}

#[cfg(target_os = "linux")]
fn continue_tcp(socket: HandoverSocket) -> io::Result<TcpListener> {
    adit_net::handover::continue_tcp_listener(socket.fd)
}

#[cfg(target_os = "linux")]
fn continue_udp(socket: HandoverSocket) -> io::Result<UdpSocket> {
    adit_net::handover::continue_udp_socket(socket.fd)
}

#[cfg(not(target_os = "linux"))]
fn continue_tcp(_: HandoverSocket) -> io::Result<TcpListener> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn continue_udp(_: HandoverSocket) -> io::Result<UdpSocket> {
    Err(io::ErrorKind::Unsupported.into())
}
