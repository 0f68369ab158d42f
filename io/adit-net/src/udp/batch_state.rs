//! The state with which a socket sends and receives batches.

#[cfg(windows)]
pub(super) use optional::{BatchSockRef, BatchState};
#[cfg(not(windows))]
pub(super) use quinn_udp::{UdpSockRef as BatchSockRef, UdpSocketState as BatchState};

#[cfg(windows)]
mod optional {
    use std::io::{self, IoSliceMut};
    use std::net::SocketAddr;

    use adit_wire::subslice_mut;
    use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
    use rustix::net::{RecvFlags, recvfrom};
    pub(in super::super) use socket2::SockRef as BatchSockRef;
    use windows_sys::Win32::Networking::WinSock::{WSAENOPROTOOPT, WSAEOPNOTSUPP};

    /// The state of a socket; `None` where the system lacks a socket option that batches need: wine 8 knows
    /// `IPV6_V6ONLY` of IPv6 sockets only. Datagrams are then sent and received one by one.
    #[derive(Debug)]
    pub(in super::super) struct BatchState(Option<UdpSocketState>);

    impl BatchState {
        pub(in super::super) fn new(socket: BatchSockRef<'_>) -> io::Result<Self> {
            match UdpSocketState::new(UdpSockRef::from(&*socket)) {
                Ok(state) => Ok(Self(Some(state))),
                Err(why) if matches!(why.raw_os_error(), Some(WSAENOPROTOOPT | WSAEOPNOTSUPP)) => {
                    Ok(Self(None))
                }
                Err(why) => Err(why),
            }
        }

        pub(in super::super) fn max_gso_segments(&self) -> usize {
            self.0.as_ref().map_or(1, UdpSocketState::max_gso_segments)
        }

        pub(in super::super) fn try_send(
            &self,
            socket: BatchSockRef<'_>,
            transmit: &Transmit<'_>,
        ) -> io::Result<()> {
            if let Some(state) = &self.0 {
                return state.try_send(UdpSockRef::from(&*socket), transmit);
            }
            debug_assert!(
                transmit
                    .segment_size
                    .is_none_or(|segment| transmit.contents.len() <= segment),
                "one datagram at a time"
            );
            let sent = socket.send_to(transmit.contents, &transmit.destination.into());
            sent.map(drop)
        }

        pub(in super::super) fn recv(
            &self,
            socket: BatchSockRef<'_>,
            buffers: &mut [IoSliceMut<'_>],
            meta: &mut [RecvMeta],
        ) -> io::Result<usize> {
            if let Some(state) = &self.0 {
                return state.recv(UdpSockRef::from(&*socket), buffers, meta);
            }
            let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
                return Ok(0);
            };
            let (len, _, from) = recvfrom(&*socket, &mut **buffer, RecvFlags::empty())?;
            let from = from.ok_or(io::ErrorKind::InvalidData)?;
            *meta = RecvMeta::default();
            meta.addr = SocketAddr::try_from(from)?;
            meta.len = subslice_mut(buffer, ..len).len();
            meta.stride = len;
            Ok(1)
        }
    }
}
