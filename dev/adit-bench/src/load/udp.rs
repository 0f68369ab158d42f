//! Datagrams one way through a tunnel: with a limited number in flight, or as fast as possible.
//!
//! Sender and receiver are threads of this process, so the sender knows without any packet how many
//! have arrived.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use adit_interop::loopback_addr;
use anyhow::{Result, anyhow, bail, ensure};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::LoadDirection;
use super::content::{ByteContent, CheckMode};
use super::in_flight::{DatagramsInFlight, SendPace};

/// Returns the payload of a datagram, in bytes: with the overhead of the AES methods of the 2022
/// edition it fills a packet of 1,500 bytes over IPv6. Answers carry their client's session, 8
/// bytes more.
pub(crate) const fn payload_len(direction: LoadDirection) -> usize {
    match direction {
        LoadDirection::Up => 1390,
        LoadDirection::Down => 1382,
    }
}

/// Number of the datagram that opens the session.
const HELLO_NUMBER: u64 = u64::MAX;
/// Time that the receiver waits for stragglers.
const STRAGGLER_WAIT: Duration = Duration::from_millis(300);
/// Time after which a run ends that loses most of its datagrams and waits for each of them; the
/// figures are then those of the datagrams it has sent.
const MAX_RUN: Duration = Duration::from_secs(20);
/// Socket buffers of the load, so that they are not the cause of drops.
const SOCKET_BUFFER: usize = 8 << 20;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramDelivery {
    /// Datagrams sent.
    pub(crate) sent: u64,
    /// Datagrams that arrived, each counted once.
    pub(crate) delivered: u64,
    /// Datagrams that arrived again.
    pub(crate) duplicates: u64,
    /// Time from the first one sent to the last that arrived.
    pub(crate) elapsed: Duration,
}

/// The origin's socket, which must be bound before the tunnel that leads to it is started.
#[derive(Debug)]
pub(crate) struct UdpOrigin {
    socket: UdpSocket,
}

impl UdpOrigin {
    /// Binds the socket on loopback.
    pub(crate) fn bind() -> Result<Self> {
        Ok(Self {
            socket: bind_socket()?,
        })
    }

    /// Returns its address.
    pub(crate) fn addr(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Opens a session to the origin through `entry`.
    pub(crate) fn open_session(&self, entry: SocketAddr) -> Result<TunnelSession> {
        let client = bind_socket()?;
        client.connect(entry)?;
        self.socket
            .set_read_timeout(Some(Duration::from_millis(200)))?;
        let mut buf = [0; 2048];
        for _ in 0..20 {
            client.send(&HELLO_NUMBER.to_be_bytes())?;
            while let Ok((len, from)) = self.socket.recv_from(&mut buf) {
                // Leftovers of an earlier session may still arrive.
                if buf.get(..len) == Some(&HELLO_NUMBER.to_be_bytes()[..]) {
                    return Ok(TunnelSession {
                        client,
                        origin: self.socket.try_clone()?,
                        return_addr: from,
                    });
                }
            }
        }
        bail!("no datagram passes the tunnel")
    }
}

fn bind_socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(loopback_addr(0))?;
    // Beyond the system's limit only with privileges; without them, up to the limit.
    if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER)?;
    }
    Ok(socket)
}

/// An open session of a tunnel.
#[derive(Debug)]
pub(crate) struct TunnelSession {
    client: UdpSocket,
    origin: UdpSocket,
    return_addr: SocketAddr,
}

impl TunnelSession {
    /// Sends `count` datagrams of `payload` bytes one way, or as many as [`MAX_RUN`] allows.
    pub(crate) fn send_one_way(
        &self,
        direction: LoadDirection,
        count: u64,
        pace: SendPace,
    ) -> Result<DatagramDelivery> {
        let (sender, to, receiver) = match direction {
            LoadDirection::Up => (&self.client, None, &self.origin),
            LoadDirection::Down => (&self.origin, Some(self.return_addr), &self.client),
        };
        let size = payload_len(direction);
        let flight = DatagramsInFlight::default();
        thread::scope(|scope| {
            let me = thread::current();
            let flight = &flight;
            let receiving =
                scope.spawn(move || receive_datagrams(receiver, size, count, pace, flight, &me));
            let start = Instant::now();
            let sent = send_datagrams(sender, to, size, count, pace, flight);
            flight.mark_all_sent();
            let received = receiving
                .join()
                .map_err(|_| anyhow!("the receiving thread panicked"))??;
            let sent = sent?;
            ensure!(received.delivered > 0, "none of {count} datagrams arrived");
            Ok(DatagramDelivery {
                sent,
                elapsed: received.last.duration_since(start),
                delivered: received.delivered,
                duplicates: received.duplicates,
            })
        })
    }
}

fn send_datagrams(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    size: usize,
    count: u64,
    pace: SendPace,
    flight: &DatagramsInFlight,
) -> Result<u64> {
    let mut packet = vec![0; size];
    let start = Instant::now();
    for number in 0..count {
        flight.wait_for_room(pace);
        pace.wait_for_time(start, number * size as u64);
        let (head, body) = packet.split_at_mut(8);
        head.copy_from_slice(&number.to_be_bytes());
        body.copy_from_slice(ByteContent::get().slice_at(number, body.len()));
        loop {
            let sent = match to {
                Some(to) => socket.send_to(&packet, to),
                None => socket.send(&packet),
            };
            match sent {
                Ok(_) => break,
                // The device's queue is full: try again, as a blocking sender would.
                Err(why)
                    if why.kind() == ErrorKind::WouldBlock
                        || why.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) =>
                {
                    thread::yield_now();
                }
                Err(why) => return Err(why.into()),
            }
        }
        flight.record_sent(number + 1);
        if number % 64 == 63 && start.elapsed() >= MAX_RUN {
            return Ok(number + 1);
        }
    }
    Ok(count)
}

#[derive(Debug)]
struct ReceiveCounts {
    delivered: u64,
    duplicates: u64,
    last: Instant,
}

fn receive_datagrams(
    socket: &UdpSocket,
    size: usize,
    count: u64,
    pace: SendPace,
    flight: &DatagramsInFlight,
    sender: &Thread,
) -> Result<ReceiveCounts> {
    socket.set_read_timeout(Some(STRAGGLER_WAIT))?;
    let mut seen = vec![false; usize::try_from(count)?];
    let mut received = ReceiveCounts {
        delivered: 0,
        duplicates: 0,
        last: Instant::now(),
    };
    let mut buf = [0; 2048];
    while received.delivered < count {
        let packet = match socket.recv(&mut buf) {
            Ok(len) => buf.get(..len).unwrap_or_default(),
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                if flight.is_all_sent() {
                    break;
                }
                continue;
            }
            Err(why) => return Err(why.into()),
        };
        let Some((head, body)) = packet.split_first_chunk::<8>() else {
            bail!("a datagram has {} bytes", packet.len());
        };
        let number = u64::from_be_bytes(*head);
        if number == HELLO_NUMBER {
            continue;
        }
        let right =
            packet.len() == size && ByteContent::get().matches(number, body, CheckMode::Sampled);
        ensure!(right, "datagram {number} has other bytes");
        let index = usize::try_from(number).ok();
        let Some(slot) = index.and_then(|index| seen.get_mut(index)) else {
            bail!("a datagram has the number {number}, of {count}");
        };
        if std::mem::replace(slot, true) {
            received.duplicates += 1;
            continue;
        }
        received.delivered += 1;
        flight.record_delivered(received.delivered, pace, sender);
        received.last = Instant::now();
    }
    Ok(received)
}

#[cfg(test)]
mod tests;
