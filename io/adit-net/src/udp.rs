//! UDP sockets.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use adit_wire::unmap;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use crate::PacketBuf;

/// Socket buffers asked for, in bytes; the system may give less.
const BUFFER: usize = 4 << 20;

/// A UDP socket that speaks IPv4 and, where it is bound to a v6 address, IPv6.
///
/// Addresses go in and come out unmapped: a dual-stack socket never shows `::ffff:a.b.c.d`.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    v6: bool,
}

impl Udp {
    /// Binds. A v6 wildcard also takes IPv4.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(!addr.ip().is_unspecified())?;
        }
        // The system's maximum may be lower; then it gives that.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        socket.set_nonblocking(true)?;
        socket.bind(&addr.into())?;
        Ok(Self {
            socket: UdpSocket::from_std(socket.into())?,
            v6: addr.is_ipv6(),
        })
    }

    /// Binds an ephemeral port for both families, or for IPv4 alone where there is no IPv6.
    pub fn ephemeral() -> io::Result<Self> {
        Self::bind(SocketAddr::from(([0u16; 8], 0)))
            .or_else(|_| Self::bind(SocketAddr::from(([0u8; 4], 0))))
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let addr = self.socket.local_addr()?;
        Ok(SocketAddr::new(unmap(addr.ip()), addr.port()))
    }

    /// The receive buffer the system gave, in bytes.
    #[must_use]
    pub fn recv_buffer(&self) -> usize {
        SockRef::from(&self.socket).recv_buffer_size().unwrap_or(0)
    }

    /// Receives one datagram. Errors that tell of an earlier datagram (ICMP) are passed over.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
    ) -> Poll<io::Result<SocketAddr>> {
        loop {
            let mut space = ReadBuf::new(packet.space());
            match ready!(self.socket.poll_recv_from(cx, &mut space)) {
                Ok(from) => {
                    let n = space.filled().len();
                    packet.set_len(n);
                    return Poll::Ready(Ok(SocketAddr::new(unmap(from.ip()), from.port())));
                }
                Err(e) if about_an_earlier_datagram(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    /// Receives one datagram.
    pub async fn recv(&self, packet: &mut PacketBuf) -> io::Result<SocketAddr> {
        std::future::poll_fn(|cx| self.poll_recv(cx, packet)).await
    }

    /// Sends now, or reports that the socket is full: a datagram does not wait.
    pub fn try_send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        let to = match to {
            SocketAddr::V4(v4) if self.v6 => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            other => other,
        };
        match self.socket.try_send_to(bytes, to) {
            // The readiness cache may be stale before the first poll: ask the socket itself.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => SockRef::from(&self.socket)
                .send_to(bytes, &to.into())
                .map(drop),
            Err(e) if about_an_earlier_datagram(&e) => SockRef::from(&self.socket)
                .send_to(bytes, &to.into())
                .map(drop),
            other => other.map(drop),
        }
    }
}

fn about_an_earlier_datagram(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_families_through_one_socket() {
        let out = Udp::ephemeral().unwrap();
        let here = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut packet = PacketBuf::default();
        for payload in [&b""[..], b"x", &[7; 9000]] {
            out.try_send(payload, here.local_addr().unwrap()).unwrap();
            let from = here.recv(&mut packet).await.unwrap();
            assert_eq!(packet.payload(), payload);
            here.try_send(packet.payload(), from).unwrap();
            let from = out.recv(&mut packet).await.unwrap();
            assert_eq!(
                (from, packet.payload()),
                (here.local_addr().unwrap(), payload)
            );
        }
    }

    #[tokio::test]
    async fn a_closed_port_does_not_break_the_socket() {
        let gone = Udp::bind("127.0.0.1:0".parse().unwrap())
            .unwrap()
            .local_addr()
            .unwrap();
        let out = Udp::ephemeral().unwrap();
        let here = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..3 {
            out.try_send(b"lost", gone).unwrap();
        }
        out.try_send(b"found", here.local_addr().unwrap()).unwrap();
        let mut packet = PacketBuf::default();
        here.recv(&mut packet).await.unwrap();
        assert_eq!(packet.payload(), b"found");
    }
}
