//! Datagrams one way through a tunnel: with a limited number in flight, or as fast as possible.
//!
//! Sender and receiver are threads of this process, so the sender knows without any packet how many
//! have arrived.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use adit_interop::loopback;
use anyhow::{Result, anyhow, bail, ensure};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::Direction;
use super::content::{Check, Content};
use super::flight::{Flight, Pace};

/// Returns the payload of a datagram, in bytes: with the overhead of the AES methods of the 2022
/// edition it fills a packet of 1,500 bytes over IPv6. Answers carry their client's session, 8
/// bytes more.
pub(crate) const fn payload(direction: Direction) -> usize {
    match direction {
        Direction::Up => 1390,
        Direction::Down => 1382,
    }
}

/// Number of the datagram that opens the session.
const HELLO: u64 = u64::MAX;
/// Time that the receiver waits for stragglers.
const STRAGGLERS: Duration = Duration::from_millis(300);
/// Time after which a run ends that loses most of its datagrams and waits for each of them; the
/// figures are then those of the datagrams it has sent.
const LONGEST: Duration = Duration::from_secs(20);
/// Socket buffers of the load, so that they are not the cause of drops.
const OWN_BUFFER: usize = 8 << 20;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
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
        Ok(Self { socket: socket()? })
    }

    /// Returns its address.
    pub(crate) fn addr(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Opens a session to the origin through `entry`.
    pub(crate) fn session(&self, entry: SocketAddr) -> Result<Session> {
        let client = socket()?;
        client.connect(entry)?;
        self.socket
            .set_read_timeout(Some(Duration::from_millis(200)))?;
        let mut buf = [0; 2048];
        for _ in 0..20 {
            client.send(&HELLO.to_be_bytes())?;
            while let Ok((len, from)) = self.socket.recv_from(&mut buf) {
                // Leftovers of an earlier session may still arrive.
                if buf.get(..len) == Some(&HELLO.to_be_bytes()[..]) {
                    return Ok(Session {
                        client,
                        origin: self.socket.try_clone()?,
                        back: from,
                    });
                }
            }
        }
        bail!("no datagram passes the tunnel")
    }
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(loopback(0))?;
    // Beyond the system's limit only with privileges; without them, up to the limit.
    if sockopt::set_socket_recv_buffer_size_force(&socket, OWN_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, OWN_BUFFER)?;
    }
    Ok(socket)
}

/// An open session of a tunnel.
#[derive(Debug)]
pub(crate) struct Session {
    client: UdpSocket,
    origin: UdpSocket,
    back: SocketAddr,
}

impl Session {
    /// Sends `count` datagrams of [`payload`] bytes one way, or as many as [`LONGEST`] allows.
    pub(crate) fn run(&self, direction: Direction, count: u64, pace: Pace) -> Result<Delivery> {
        let (sender, to, receiver) = match direction {
            Direction::Up => (&self.client, None, &self.origin),
            Direction::Down => (&self.origin, Some(self.back), &self.client),
        };
        let size = payload(direction);
        let flight = Flight::default();
        thread::scope(|scope| {
            let me = thread::current();
            let flight = &flight;
            let receiving = scope.spawn(move || receive(receiver, size, count, pace, flight, &me));
            let start = Instant::now();
            let sent = send(sender, to, size, count, pace, flight);
            flight.sent_all();
            let received = receiving
                .join()
                .map_err(|_| anyhow!("the receiving thread panicked"))??;
            let sent = sent?;
            ensure!(received.delivered > 0, "none of {count} datagrams arrived");
            Ok(Delivery {
                sent,
                elapsed: received.last.duration_since(start),
                delivered: received.delivered,
                duplicates: received.duplicates,
            })
        })
    }
}

fn send(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    size: usize,
    count: u64,
    pace: Pace,
    flight: &Flight,
) -> Result<u64> {
    let mut packet = vec![0; size];
    let start = Instant::now();
    for number in 0..count {
        flight.wait_for_room(pace);
        pace.wait_for_time(start, number * size as u64);
        let (head, body) = packet.split_at_mut(8);
        head.copy_from_slice(&number.to_be_bytes());
        body.copy_from_slice(Content::get().at(number, body.len()));
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
        flight.sent(number + 1);
        if number % 64 == 63 && start.elapsed() >= LONGEST {
            return Ok(number + 1);
        }
    }
    Ok(count)
}

#[derive(Debug)]
struct Received {
    delivered: u64,
    duplicates: u64,
    last: Instant,
}

fn receive(
    socket: &UdpSocket,
    size: usize,
    count: u64,
    pace: Pace,
    flight: &Flight,
    sender: &Thread,
) -> Result<Received> {
    socket.set_read_timeout(Some(STRAGGLERS))?;
    let mut seen = vec![false; usize::try_from(count)?];
    let mut received = Received {
        delivered: 0,
        duplicates: 0,
        last: Instant::now(),
    };
    let mut buf = [0; 2048];
    while received.delivered < count {
        let packet = match socket.recv(&mut buf) {
            Ok(len) => buf.get(..len).unwrap_or_default(),
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                if flight.is_sent() {
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
        if number == HELLO {
            continue;
        }
        let right = packet.len() == size && Content::get().agrees(number, body, Check::Sampled);
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
        flight.delivered(received.delivered, pace, sender);
        received.last = Instant::now();
    }
    Ok(received)
}

#[cfg(test)]
mod tests;
