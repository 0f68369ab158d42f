//! The carrier of a session's datagrams: a UDP socket, or a custom transport.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_net::BatchUdpSocket;
use adit_wire::subslice;

use super::settings::MAX_DATAGRAM;

/// Maximum number of datagrams received before the sessions answer.
pub(super) const BATCH: usize = 16;

/// A carrier of datagrams for sessions without a UDP socket: a tunnel, a serial line, shared
/// memory, or a socket that you read for other purposes too.
///
/// As with UDP, datagrams may be lost, duplicated and reordered; they must not be split or joined,
/// and they have at most 1,500 bytes. A transport whose peers have no IP addresses invents some:
/// they only distinguish peers, and a listener counts sessions by them
/// ([`Settings::per_source`](super::Settings::per_source)).
///
/// No method waits for space to send. A datagram for which there is no space is lost, and KCP sends
/// its data again.
///
/// ```
/// use adit_kcp::DatagramTransport;
/// use std::io;
/// use std::net::SocketAddr;
/// use std::sync::Mutex;
/// use std::task::{Context, Poll, ready};
/// use tokio::sync::mpsc;
///
/// /// Datagrams that other tasks of the program send and receive.
/// struct Channels {
///     out: mpsc::Sender<(Vec<u8>, SocketAddr)>,
///     inbound: Mutex<mpsc::Receiver<(Vec<u8>, SocketAddr)>>,
/// }
///
/// impl DatagramTransport for Channels {
///     fn poll_recv_from(
///         &self,
///         cx: &mut Context<'_>,
///         out: &mut [u8],
///     ) -> Poll<io::Result<(usize, SocketAddr)>> {
///         let mut inbound = self.inbound.lock().unwrap();
///         Poll::Ready(match ready!(inbound.poll_recv(cx)) {
///             Some((datagram, from)) => {
///                 let len = datagram.len().min(out.len());
///                 out[..len].copy_from_slice(&datagram[..len]);
///                 Ok((len, from))
///             }
///             None => Err(io::ErrorKind::BrokenPipe.into()),
///         })
///     }
///
///     fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
///         let sent = self.out.try_send((datagram.to_vec(), to));
///         sent.map_err(|_| io::ErrorKind::WouldBlock.into())
///     }
///
///     fn local_addr(&self) -> io::Result<SocketAddr> {
///         Err(io::ErrorKind::Unsupported.into())
///     }
/// }
/// ```
pub trait DatagramTransport: Send + Sync + 'static {
    /// Receives one datagram to the front of `out`, which has 1,500 bytes; a longer datagram may be
    /// truncated. Returns its length in bytes and its source. One task calls this until there are
    /// no more datagrams, then waits: wake the waker of its last call when a datagram arrives.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` is the end of the transport: all its sessions fail with it, and no new session
    /// starts. After any other error the transport is polled again in 100 ms.
    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>>;

    /// Sends a datagram immediately, or drops it. Several tasks may call this at the same time,
    /// each with its session locked: it must not block, nor use a stream over this transport.
    ///
    /// # Errors
    ///
    /// Errors are counted ([`Counters`](super::Counters)), and the datagram is lost. `WouldBlock`
    /// means that there was no space.
    fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()>;

    /// Sends the datagrams of a batch like [`try_send_to`](Self::try_send_to): `bytes` contains
    /// them back to back, `segment` bytes each; the last may be shorter. Override this if the
    /// transport can send several with one call.
    ///
    /// # Errors
    ///
    /// The first error of [`try_send_to`](Self::try_send_to); the other datagrams are sent
    /// nevertheless.
    fn try_send_run(&self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        let datagrams = bytes.chunks(segment.max(1));
        let sent = datagrams.map(|datagram| self.try_send_to(datagram, to));
        sent.fold(Ok(()), io::Result::and)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// The transport has no address.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

impl<T: DatagramTransport + ?Sized> DatagramTransport for Arc<T> {
    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        T::poll_recv_from(self, cx, out)
    }

    fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        T::try_send_to(self, datagram, to)
    }

    fn try_send_run(&self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        T::try_send_run(self, bytes, segment, to)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        T::local_addr(self)
    }
}

/// A UDP socket or a custom transport.
#[allow(clippy::large_enum_variant, reason = "there is one for each socket")]
pub(super) enum Transport {
    Udp(BatchUdpSocket),
    Own(Box<dyn DatagramTransport>),
}

impl Transport {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(udp) => udp.local_addr(),
            Self::Own(own) => own.local_addr(),
        }
    }

    /// Returns the UDP socket, if it is one.
    pub(super) const fn udp(&self) -> Option<&BatchUdpSocket> {
        match self {
            Self::Udp(udp) => Some(udp),
            Self::Own(_) => None,
        }
    }

    /// Returns true if the next process receives on the socket, and starts the sessions.
    pub(super) fn is_handed_over(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Self::Udp(udp) = self {
            return udp.is_handed_over();
        }
        false
    }

    pub(super) fn try_send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.try_send(datagram, to),
            Self::Own(own) => own.try_send_to(datagram, to),
        }
    }

    /// Sends datagrams of `segment` bytes each; the last may be shorter.
    pub(super) fn send_all(&self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.send_all(bytes, segment, to),
            Self::Own(own) => own.try_send_run(bytes, segment, to),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(udp) => udp.fmt(f),
            Self::Own(_) => f.write_str("Own"),
        }
    }
}

/// Receives at most [`BATCH`] datagrams from `own`, and passes consecutive ones from the same
/// address to `each` together.
pub(super) fn poll_receive(
    own: &dyn DatagramTransport,
    cx: &mut Context<'_>,
    each: &mut dyn FnMut(&mut [&mut [u8]], SocketAddr),
) -> Poll<io::Result<()>> {
    // Taken out while it is in use: the transport is foreign code, which may call back.
    let mut bytes = RECEIVE_BUFFER.take();
    bytes.resize(BATCH * MAX_DATAGRAM, 0);
    let received = receive_batch(&mut bytes, own, cx, each);
    RECEIVE_BUFFER.set(bytes);
    received
}

fn receive_batch(
    bytes: &mut [u8],
    own: &dyn DatagramTransport,
    cx: &mut Context<'_>,
    each: &mut dyn FnMut(&mut [&mut [u8]], SocketAddr),
) -> Poll<io::Result<()>> {
    let mut packets: [&mut [u8]; BATCH] = std::array::from_fn(|_| Default::default());
    let mut senders = [None; BATCH];
    let places = bytes.chunks_mut(MAX_DATAGRAM).zip(&mut packets);
    for (at, ((room, packet), sender)) in places.zip(&mut senders).enumerate() {
        match own.poll_recv_from(cx, room) {
            Poll::Ready(Ok((len, from))) => {
                // A length beyond the buffer is an error of the transport; there is no datagram.
                *packet = room.get_mut(..len).unwrap_or_default();
                *sender = Some(from);
            }
            Poll::Ready(Err(why)) if at == 0 => return Poll::Ready(Err(why)),
            Poll::Pending if at == 0 => return Poll::Pending,
            // The datagrams before it are valid; the next call returns the error again.
            _ => break,
        }
    }
    let mut rest = &mut packets[..];
    let mut senders = &senders[..];
    while let Some(Some(from)) = senders.first() {
        let count = senders.iter().take_while(|other| **other == Some(*from));
        let count = count.count();
        let (run, behind) = rest.split_at_mut(count);
        each(run, *from);
        (rest, senders) = (behind, subslice(senders, count..));
    }
    Poll::Ready(Ok(()))
}

thread_local! {
    /// The receive buffer: one for all transports of a thread.
    static RECEIVE_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
