//! Connections and datagrams that were on their way to somebody else (Linux).
//!
//! The firewall turns them here in one of two ways. `REDIRECT` rewrites the destination, and the
//! kernel remembers the first one ([`listen_redirected`], [`original_dst`]). `TPROXY` leaves packets as they are and
//! hands them to a socket that may take what is not addressed to it (`IP_TRANSPARENT`, ip(7)):
//! an accepted connection's own address is its destination ([`listen`]), a datagram's comes
//! beside it ([`Taken`]). Answers to datagrams leave from the address that the client has written
//! to ([`voice`]).
//!
//! Elsewhere everything here is an error that says so.

#[cfg(target_os = "linux")]
pub(crate) use linux::is_transparent;
#[cfg(target_os = "linux")]
pub use linux::{Taken, listen, listen_redirected, original_dst, voice};

#[cfg(not(target_os = "linux"))]
pub use absent::{Taken, listen, listen_redirected, original_dst, voice};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
    use std::os::fd::{AsRawFd, RawFd};
    use std::sync::{Mutex, PoisonError};

    use nix::libc::{sockaddr_in, sockaddr_in6};
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg,
        setsockopt, sockopt,
    };
    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::net::{TcpListener, TcpStream, UdpSocket};

    use crate::udp::about_an_earlier_datagram;
    use crate::{Buffers, PacketBuf, Udp, tcp, udp};

    /// Datagrams that one [`Taken::try_recv`] takes.
    const BATCH: usize = 16;

    /// Opens a listening socket that takes connections to any address. A v6 wildcard also takes
    /// IPv4. The destination of an accepted connection is its local address.
    ///
    /// # Errors
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) without `CAP_NET_ADMIN`.
    pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
        tcp::listen_with(addr, |socket| set_transparent(socket, addr))
    }

    /// Opens a listening socket for connections that `REDIRECT` brings; any socket will do. A v6
    /// wildcard also takes IPv4.
    pub fn listen_redirected(addr: SocketAddr) -> io::Result<TcpListener> {
        tcp::listen(addr)
    }

    /// Where a connection was going before `REDIRECT` turned it here (`SO_ORIGINAL_DST`).
    ///
    /// A connection that came straight to this socket has gone where it is: to its own local
    /// address.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) where the kernel does not track the connection.
    pub fn original_dst(stream: &TcpStream) -> io::Result<SocketAddr> {
        let socket = SockRef::from(stream);
        let dst = match unmapped(stream.local_addr()?) {
            SocketAddr::V4(_) => socket.original_dst_v4(),
            SocketAddr::V6(_) => socket.original_dst_v6(),
        }?;
        dst.as_socket()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// A UDP socket that receives what is meant for others.
    #[derive(Debug)]
    pub struct Taken {
        socket: UdpSocket,
        /// Where the kernel puts the destination, one message at a time.
        control: Mutex<Vec<u8>>,
    }

    impl Taken {
        /// Binds. A v6 wildcard also takes IPv4. The port may be shared with sockets of
        /// [`voice`], since a client may write to a port that happens to be ours.
        ///
        /// # Errors
        /// As [`listen`].
        pub fn bind(addr: SocketAddr) -> io::Result<Self> {
            let socket = udp::open(addr)?;
            set_transparent(&socket, addr)?;
            socket.set_reuse_address(true)?;
            if addr.is_ipv6() {
                setsockopt(&socket, sockopt::Ipv6OrigDstAddr, &true)?;
            }
            if addr.is_ipv4() || addr.ip().is_unspecified() {
                setsockopt(&socket, sockopt::Ipv4OrigDstAddr, &true)?;
            }
            socket.bind(&addr.into())?;
            Ok(Self {
                socket: UdpSocket::from_std(socket.into())?,
                control: Mutex::new(nix::cmsg_space!(sockaddr_in, sockaddr_in6)),
            })
        }

        /// The address it is bound to.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            self.socket.local_addr()
        }

        /// What the system gave it for datagrams that wait.
        #[must_use]
        pub fn buffers(&self) -> Buffers {
            Buffers::of(SockRef::from(&self.socket))
        }

        /// Waits until there is something to receive.
        pub async fn readable(&self) -> io::Result<()> {
            self.socket.readable().await
        }

        /// Receives what there is, up to a batch, without waiting: each datagram into `packet`,
        /// and to `each` with its sender and where it was going.
        pub fn try_recv(
            &self,
            packet: &mut PacketBuf,
            mut each: impl FnMut(&mut PacketBuf, SocketAddr, Option<SocketAddr>),
        ) -> io::Result<()> {
            let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
            for taken in 0..BATCH {
                let received = self.socket.try_io(Interest::READABLE, || {
                    receive(self.socket.as_raw_fd(), packet.space(), &mut control)
                });
                match received {
                    Ok(Some((len, from, to))) => {
                        packet.set_len(len);
                        each(packet, from, to);
                    }
                    Ok(None) => {}
                    Err(e) if about_an_earlier_datagram(&e) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock && taken > 0 => break,
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        }
    }

    /// Length, sender and destination of one datagram.
    type Received = (usize, SocketAddr, Option<SocketAddr>);

    /// Receives one datagram; `None` for one that is longer than any of IPv4 and so was cut.
    ///
    /// One by one: the safe wrapper of `recvmmsg` does not restore the lengths in its headers, so that
    /// each call would need new ones.
    fn receive(fd: RawFd, space: &mut [u8], control: &mut [u8]) -> io::Result<Option<Received>> {
        let mut space = [IoSliceMut::new(space)];
        let message = recvmsg::<SockaddrStorage>(fd, &mut space, Some(control), MsgFlags::empty())?;
        let Some(from) = message.address.as_ref().and_then(socket_addr) else {
            return Ok(None);
        };
        if message.flags.contains(MsgFlags::MSG_TRUNC) {
            return Ok(None);
        }
        let to = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4OrigDstAddr(to) => {
                Some(SocketAddrV4::from(SockaddrIn::from(to)).into())
            }
            ControlMessageOwned::Ipv6OrigDstAddr(to) => {
                Some(SocketAddrV6::from(SockaddrIn6::from(to)).into())
            }
            _ => None,
        });
        Ok(Some((message.bytes, unmapped(from), to.map(unmapped))))
    }

    /// A socket that speaks in the name of `source`, which may be anybody's address.
    ///
    /// # Errors
    /// As [`listen`].
    pub fn voice(source: SocketAddr) -> io::Result<Udp> {
        let socket = udp::open(source)?;
        set_transparent(&socket, source)?;
        // Others may speak for the same party.
        socket.set_reuse_address(true)?;
        // It is not there to hear; the kernel gives what it gives at least.
        let _ = socket.set_recv_buffer_size(0);
        Udp::bound(socket, source)
    }

    /// Whether a listening socket takes connections to any address.
    pub(crate) fn is_transparent(listener: &TcpListener) -> bool {
        let socket = SockRef::from(listener);
        let v6 = socket.ip_transparent_v6();
        matches!(socket.ip_transparent_v4(), Ok(true)) || matches!(v6, Ok(true))
    }

    fn set_transparent(socket: &Socket, addr: SocketAddr) -> io::Result<()> {
        let set = if addr.is_ipv4() {
            socket.set_ip_transparent_v4(true)
        } else {
            socket.set_ip_transparent_v6(true)
        };
        set.map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                e.kind(),
                "taking traffic that is meant for others needs the capability CAP_NET_ADMIN; \
                 run as root, or with `AmbientCapabilities=CAP_NET_ADMIN` in the systemd unit, \
                 or after `setcap cap_net_admin+ep` on the binary",
            ),
            _ => e,
        })
    }

    fn socket_addr(addr: &SockaddrStorage) -> Option<SocketAddr> {
        match (addr.as_sockaddr_in(), addr.as_sockaddr_in6()) {
            (Some(v4), _) => Some(SocketAddrV4::from(*v4).into()),
            (_, Some(v6)) => Some(SocketAddrV6::from(*v6).into()),
            _ => None,
        }
    }

    /// A mapped address as the IPv4 address it is; the scope of others stays.
    fn unmapped(addr: SocketAddr) -> SocketAddr {
        match adit_wire::unmap(addr.ip()) {
            ip if ip == addr.ip() => addr,
            ip => SocketAddr::new(ip, addr.port()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod absent {
    use std::convert::Infallible;
    use std::io;
    use std::net::SocketAddr;

    use tokio::net::{TcpListener, TcpStream};

    use crate::{Buffers, PacketBuf, Udp};

    fn absent<T>() -> io::Result<T> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "transparent listeners exist on Linux alone",
        ))
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Always.
    pub fn listen(_: SocketAddr) -> io::Result<TcpListener> {
        absent()
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Always.
    pub fn listen_redirected(_: SocketAddr) -> io::Result<TcpListener> {
        absent()
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Always.
    pub fn original_dst(_: &TcpStream) -> io::Result<SocketAddr> {
        absent()
    }

    /// Not on this system.
    ///
    /// # Errors
    /// Always.
    pub fn voice(_: SocketAddr) -> io::Result<Udp> {
        absent()
    }

    /// Not on this system: there is none.
    #[derive(Debug)]
    pub struct Taken(Infallible);

    impl Taken {
        /// Not on this system.
        ///
        /// # Errors
        /// Always.
        pub fn bind(_: SocketAddr) -> io::Result<Self> {
            absent()
        }

        /// There is no such socket.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            match self.0 {}
        }

        /// There is no such socket.
        #[must_use]
        pub fn buffers(&self) -> Buffers {
            match self.0 {}
        }

        /// There is no such socket.
        pub async fn readable(&self) -> io::Result<()> {
            match self.0 {}
        }

        /// There is no such socket.
        pub fn try_recv(
            &self,
            _: &mut PacketBuf,
            _: impl FnMut(&mut PacketBuf, SocketAddr, Option<SocketAddr>),
        ) -> io::Result<()> {
            match self.0 {}
        }
    }
}
