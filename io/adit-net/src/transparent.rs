//! Transparent proxying: connections and datagrams addressed to other hosts (Linux).
//!
//! The firewall diverts them in one of two ways. `REDIRECT` rewrites the destination, and the kernel
//! remembers the original one ([`listen_redirected`], [`original_destination`]). `TPROXY` leaves packets unchanged
//! and passes them to a socket that may receive what is not addressed to it (`IP_TRANSPARENT`, ip(7)): the
//! local address of an accepted connection is its destination ([`listen`]), that of a datagram arrives in a
//! control message ([`TproxyUdp`]). Answers to datagrams leave from the address that the client has written to
//! ([`bind_foreign`]).
//!
//! On other systems every function returns an error that says so.

#[cfg(target_os = "linux")]
pub(crate) use linux::is_transparent;
#[cfg(target_os = "linux")]
pub use linux::{TproxyUdp, bind_foreign, listen, listen_redirected, original_destination};

#[cfg(not(target_os = "linux"))]
pub use unsupported::{TproxyUdp, bind_foreign, listen, listen_redirected, original_destination};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
    use std::sync::{Mutex, PoisonError};

    use nix::libc::{sockaddr_in, sockaddr_in6};
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg,
        setsockopt, sockopt,
    };
    use socket2::{SockRef, Socket};
    use tokio::io::Interest;
    use tokio::net::{TcpListener, TcpStream, UdpSocket};

    use crate::udp::is_icmp_error;
    use crate::{BatchUdpSocket, BufferSizes, PacketBuf, tcp, udp};

    /// Maximum number of datagrams per [`TproxyUdp::try_recv`].
    const BATCH: usize = 16;

    /// Opens a listening socket that accepts connections to any address. An IPv6 wildcard also accepts
    /// IPv4. The destination of an accepted connection is its local address.
    ///
    /// # Errors
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) without `CAP_NET_ADMIN`.
    pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
        tcp::listen_prepared(addr, |socket| set_transparent(socket, addr))
    }

    /// Opens a listening socket for connections that `REDIRECT` diverts; it needs no special option. An
    /// IPv6 wildcard also accepts IPv4.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn listen_redirected(addr: SocketAddr) -> io::Result<TcpListener> {
        tcp::listen(addr)
    }

    /// Returns the destination of a connection before `REDIRECT` diverted it (`SO_ORIGINAL_DST`).
    ///
    /// For a connection that was made to this socket directly, that is its own local address.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) where the kernel does not track the connection.
    pub fn original_destination(stream: &TcpStream) -> io::Result<SocketAddr> {
        let socket = SockRef::from(stream);
        let dst = match unmap_socket_addr(stream.local_addr()?) {
            SocketAddr::V4(_) => socket.original_dst_v4(),
            SocketAddr::V6(_) => socket.original_dst_v6(),
        }?;
        dst.as_socket()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// A UDP socket that receives datagrams addressed to other hosts.
    #[derive(Debug)]
    pub struct TproxyUdp {
        socket: UdpSocket,
        /// Buffer for the control message with the destination, one message at a time.
        control: Mutex<Vec<u8>>,
    }

    impl TproxyUdp {
        /// Binds a socket. An IPv6 wildcard also receives IPv4. The port may be shared with sockets of
        /// [`bind_foreign`], since a client may write to a port that happens to be this one.
        ///
        /// # Errors
        /// See [`listen`].
        pub fn bind(addr: SocketAddr) -> io::Result<Self> {
            let socket = udp::open_unbound(addr)?;
            set_transparent(&socket, addr)?;
            socket.set_reuse_address(true)?;
            if addr.is_ipv6() {
                setsockopt(&socket, sockopt::Ipv6OrigDstAddr, &true)?;
            }
            if addr.is_ipv4() || addr.ip().is_unspecified() {
                setsockopt(&socket, sockopt::Ipv4OrigDstAddr, &true)?;
            }
            socket.bind(&addr.into())?;
            Self::from_std(socket.into())
        }

        /// Continues a socket that another process has [bound](Self::bind).
        ///
        /// # Errors
        /// Errors of the system.
        pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            Ok(Self {
                socket: UdpSocket::from_std(socket)?,
                control: Mutex::new(nix::cmsg_space!(sockaddr_in, sockaddr_in6)),
            })
        }

        /// Returns the local address.
        ///
        /// # Errors
        /// Errors of the system.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            self.socket.local_addr()
        }

        /// Returns the sizes of the socket's buffers.
        #[must_use]
        pub fn buffers(&self) -> BufferSizes {
            BufferSizes::of_socket(SockRef::from(&self.socket))
        }

        /// Waits until there may be something to receive.
        ///
        /// # Errors
        /// Errors of the system.
        ///
        /// # Cancel safety
        /// This method is cancel safe.
        pub async fn readable(&self) -> io::Result<()> {
            self.socket.readable().await
        }

        /// Receives the available datagrams, up to a batch, without waiting: each is placed in `packet` and
        /// passed to `each` with its sender and its destination.
        ///
        /// # Errors
        /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is available, and errors of the system.
        pub fn try_recv(
            &self,
            packet: &mut PacketBuf,
            mut each: impl FnMut(&mut PacketBuf, SocketAddr, Option<SocketAddr>),
        ) -> io::Result<()> {
            let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
            for taken in 0..BATCH {
                let received = self.socket.try_io(Interest::READABLE, || {
                    receive(
                        self.socket.as_raw_fd(),
                        packet.receive_space(),
                        &mut control,
                    )
                });
                match received {
                    Ok(Some((len, from, to))) => {
                        packet.set_len(len);
                        each(packet, from, to);
                    }
                    Ok(None) => {}
                    Err(e) if is_icmp_error(&e) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock && taken > 0 => break,
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        }
    }

    impl AsFd for TproxyUdp {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.socket.as_fd()
        }
    }

    /// Length, sender and destination of a datagram.
    type Received = (usize, SocketAddr, Option<SocketAddr>);

    /// Receives one datagram; returns `None` if it was truncated because it is longer than any of IPv4.
    ///
    /// Datagrams are received one by one: the safe wrapper of `recvmmsg` does not restore the lengths in
    /// its headers, so each call would need new ones.
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
        Ok(Some((
            message.bytes,
            unmap_socket_addr(from),
            to.map(unmap_socket_addr),
        )))
    }

    /// Binds a socket that sends from `source`, which may be any address.
    ///
    /// # Errors
    /// See [`listen`].
    pub fn bind_foreign(source: SocketAddr) -> io::Result<BatchUdpSocket> {
        let socket = udp::open_unbound(source)?;
        set_transparent(&socket, source)?;
        // Other sockets may send from the same address.
        socket.set_reuse_address(true)?;
        // The socket only sends; the kernel keeps a minimum anyway.
        let _ = socket.set_recv_buffer_size(0);
        BatchUdpSocket::bind_prepared(socket, source)
    }

    /// Returns true if a listening socket accepts connections to any address.
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
                "receiving traffic for other hosts requires the capability CAP_NET_ADMIN; \
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

    /// Returns an IPv4-mapped address as IPv4; the scope of others is kept.
    fn unmap_socket_addr(addr: SocketAddr) -> SocketAddr {
        match adit_wire::unmap_ipv4(addr.ip()) {
            ip if ip == addr.ip() => addr,
            ip => SocketAddr::new(ip, addr.port()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::convert::Infallible;
    use std::io;
    use std::net::SocketAddr;

    use tokio::net::{TcpListener, TcpStream};

    use crate::{BatchUdpSocket, BufferSizes, PacketBuf};

    fn unsupported_error<T>() -> io::Result<T> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "transparent listeners are only supported on Linux",
        ))
    }

    /// Not supported on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](io::ErrorKind::Unsupported).
    pub fn listen(_: SocketAddr) -> io::Result<TcpListener> {
        unsupported_error()
    }

    /// Not supported on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](io::ErrorKind::Unsupported).
    pub fn listen_redirected(_: SocketAddr) -> io::Result<TcpListener> {
        unsupported_error()
    }

    /// Not supported on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](io::ErrorKind::Unsupported).
    pub fn original_destination(_: &TcpStream) -> io::Result<SocketAddr> {
        unsupported_error()
    }

    /// Not supported on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](io::ErrorKind::Unsupported).
    pub fn bind_foreign(_: SocketAddr) -> io::Result<BatchUdpSocket> {
        unsupported_error()
    }

    /// An uninhabited type: not supported on this system.
    #[derive(Debug)]
    pub struct TproxyUdp(Infallible);

    impl TproxyUdp {
        /// Not supported on this system.
        ///
        /// # Errors
        /// Always [`Unsupported`](io::ErrorKind::Unsupported).
        pub fn from_std(_: std::net::UdpSocket) -> io::Result<Self> {
            unsupported_error()
        }

        /// Not supported on this system.
        ///
        /// # Errors
        /// Always [`Unsupported`](io::ErrorKind::Unsupported).
        pub fn bind(_: SocketAddr) -> io::Result<Self> {
            unsupported_error()
        }

        /// Never called.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            match self.0 {}
        }

        /// Never called.
        #[must_use]
        pub fn buffers(&self) -> BufferSizes {
            match self.0 {}
        }

        /// Never called.
        pub async fn readable(&self) -> io::Result<()> {
            match self.0 {}
        }

        /// Never called.
        pub fn try_recv(
            &self,
            _: &mut PacketBuf,
            _: impl FnMut(&mut PacketBuf, SocketAddr, Option<SocketAddr>),
        ) -> io::Result<()> {
            match self.0 {}
        }
    }
}
