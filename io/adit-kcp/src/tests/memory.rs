//! A network in memory that loses, duplicates and reorders datagrams.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::*;

/// Maximum number of datagrams that wait at one address.
const QUEUE: usize = 2_000;

/// The network.
#[derive(Debug)]
pub(super) struct Net {
    faults: FaultRates,
    places: Mutex<(HashMap<SocketAddr, Place>, BytePattern)>,
}

#[derive(Debug, Default)]
struct Place {
    waiting: VecDeque<(Vec<u8>, SocketAddr)>,
    /// Held back until after the next one.
    late: Option<(Vec<u8>, SocketAddr)>,
    waker: Option<Waker>,
    ended: bool,
    /// All datagrams that were sent here.
    sent: Vec<Vec<u8>>,
}

/// One address of the network.
#[derive(Debug)]
pub(super) struct End {
    net: Arc<Net>,
    addr: SocketAddr,
}

impl Net {
    pub(super) fn new(faults: FaultRates) -> Arc<Self> {
        let places = Mutex::new((HashMap::new(), BytePattern::new(11)));
        Arc::new(Self { faults, places })
    }

    /// Returns the end with this number.
    pub(super) fn end(self: &Arc<Self>, number: u16) -> End {
        let addr = Self::addr(number);
        self.lock().0.insert(addr, Place::default());
        End {
            net: Arc::clone(self),
            addr,
        }
    }

    pub(super) fn addr(number: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], number))
    }

    /// Stops delivery to the end with this number.
    pub(super) fn close(&self, number: u16) {
        let mut places = self.lock();
        let place = places.0.get_mut(&Self::addr(number)).unwrap();
        place.ended = true;
        place.waker.take().into_iter().for_each(Waker::wake);
    }

    /// Returns the datagrams sent to this end, delivered or not.
    pub(super) fn sent_to(&self, number: u16) -> Vec<Vec<u8>> {
        self.lock().0[&Self::addr(number)].sent.clone()
    }

    /// Delivers a datagram to this end as if it came from the other.
    pub(super) fn forge(&self, from: u16, to: u16, datagram: &[u8]) {
        let mut places = self.lock();
        let place = places.0.get_mut(&Self::addr(to)).unwrap();
        place
            .waiting
            .push_back((datagram.to_vec(), Self::addr(from)));
        place.waker.take().into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, (HashMap<SocketAddr, Place>, BytePattern)> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DatagramTransport for End {
    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let mut places = self.net.lock();
        let place = places.0.get_mut(&self.addr).unwrap();
        if place.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let Some((datagram, from)) = place.waiting.pop_front() else {
            place.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        out[..datagram.len()].copy_from_slice(&datagram);
        Poll::Ready(Ok((datagram.len(), from)))
    }

    fn try_send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let faults = self.net.faults;
        let mut places = self.net.lock();
        let (places, rng) = &mut *places;
        let rng: [u8; 2] = rng.next_bytes(2).try_into().unwrap();
        let mut rng = u16::from_le_bytes(rng) % 1000;
        let mut falls = |share: u16| {
            let hit = rng < share;
            rng = rng.wrapping_sub(share);
            hit
        };
        let Some(place) = places.get_mut(&to) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let one = (datagram.to_vec(), self.addr);
        place.sent.push(one.0.clone());
        if place.waiting.len() >= QUEUE {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if falls(faults.lost) {
            return Ok(());
        }
        if falls(faults.late) && place.late.is_none() {
            place.late = Some(one);
            return Ok(());
        }
        if falls(faults.doubled) {
            place.waiting.push_back(one.clone());
        }
        place.waiting.push_back(one);
        place.waiting.extend(place.late.take());
        place.waker.take().into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr)
    }
}

/// Creates both ends of a session over a network in memory: those with the numbers 1 and 2.
pub(super) async fn pair_over(
    net: &Arc<Net>,
    server: Settings,
    client: Settings,
) -> (KcpListener, KcpStream, KcpStream) {
    let mut listener = KcpListener::bind_over(net.end(1), server).unwrap();
    let near = KcpStream::connect_over(net.end(2), Net::addr(1), client).unwrap();
    let (near, far) = met(&mut listener, near).await;
    (listener, near, far)
}
