//! Sending: equal datagrams for the same peer are collected and leave by one call.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::{MutexGuard, PoisonError};
use std::thread;

use quinn_udp::Transmit;

use super::{Udp, about_an_earlier_datagram, portable_io};
use crate::packet::MAX_PAYLOAD;

/// Segments that one call may send.
const SEGMENTS: usize = 64;
/// Datagrams of a run behind which the processor is offered to others: a receiver with the room of
/// a usual system loses all above 90 if it does not come to run in between.
const LONG: usize = 32;

/// Equal datagrams for one peer that wait for the rest of their batch.
#[derive(Debug, Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
    /// Size of each but the last, which may be shorter.
    segment: usize,
    count: usize,
}

impl Udp {
    /// Sends now, or reports that the socket is full: a datagram does not wait.
    pub fn try_send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.queue(bytes, to)?;
        self.flush()
    }

    /// Takes a datagram for the next [`flush`](Self::flush), or sends what it does not fit to.
    pub fn queue(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        if bytes.len() > MAX_PAYLOAD {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let to = self.mapped(to);
        let mut run = self.run();
        let mut long = false;
        if !run.takes(bytes, to, self.segments()) {
            long = run.count >= LONG;
            self.send_run(&mut run)?;
        }
        run.push(bytes, to);
        drop(run);
        if long {
            thread::yield_now();
        }
        Ok(())
    }

    /// Sends what was queued.
    pub fn flush(&self) -> io::Result<()> {
        let mut run = self.run();
        let long = run.count >= LONG;
        let sent = self.send_run(&mut run);
        drop(run);
        if long {
            thread::yield_now();
        }
        sent
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments(&self) -> usize {
        if portable_io() {
            1
        } else {
            self.state.max_gso_segments().min(SEGMENTS)
        }
    }

    fn send_run(&self, run: &mut Run) -> io::Result<()> {
        let Some(destination) = run.to.take() else {
            return Ok(());
        };
        let sent = self.send_segments(&run.bytes, run.segment, destination);
        run.count = 0;
        run.bytes.clear();
        if run.bytes.capacity() > 0 {
            // Nobody waits with a buffer in hand.
            SPARE.with_borrow_mut(|spare| {
                let bytes = std::mem::take(&mut run.bytes);
                if spare.capacity() < bytes.capacity() {
                    *spare = bytes;
                }
            });
        }
        sent
    }

    /// Sends datagrams of `segment` bytes each that lie one behind the other, the last of which may
    /// be shorter, from where they lie. What was [queued](Self::queue) is not waited for.
    pub fn send_all(&self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        let to = self.mapped(to);
        let segment = segment.max(1);
        let most = self.segments().min(MAX_PAYLOAD / segment).max(1);
        bytes
            .chunks(most * segment)
            .try_for_each(|run| self.send_segments(run, segment, to))
    }

    /// The address as the socket's family has it.
    fn mapped(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(v4) if self.v6 => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            other => other,
        }
    }

    fn send_segments(
        &self,
        bytes: &[u8],
        segment: usize,
        destination: SocketAddr,
    ) -> io::Result<()> {
        let send = |contents: &[u8], segment_size: Option<usize>| {
            let transmit = Transmit {
                destination,
                ecn: None,
                contents,
                segment_size,
                src_ip: None,
            };
            match self.state.try_send(self.socket.datagrams(), &transmit) {
                // An ICMP answer to an earlier datagram says nothing of this one.
                Err(e) if about_an_earlier_datagram(&e) => {
                    self.state.try_send(self.socket.datagrams(), &transmit)
                }
                sent => sent,
            }
        };
        if bytes.len() <= segment {
            return send(bytes, None);
        }
        match send(bytes, Some(segment)) {
            // The route does not segment: the state has noticed, from now on one by one.
            Err(e)
                if self.state.max_gso_segments() <= 1 && e.kind() != io::ErrorKind::WouldBlock =>
            {
                bytes
                    .chunks(segment.max(1))
                    .try_for_each(|one| send(one, None))
            }
            sent => sent,
        }
    }
}

impl Run {
    /// Whether a datagram may join: equal ones, the last one may be shorter.
    fn takes(&self, bytes: &[u8], to: SocketAddr, segments: usize) -> bool {
        match self.to {
            None => true,
            Some(peer) => {
                peer == to
                    && self.count < segments
                    && self.segment > 0
                    && !bytes.is_empty()
                    && bytes.len() <= self.segment
                    && self.bytes.len() == self.segment * self.count
                    && self.bytes.len() + bytes.len() <= MAX_PAYLOAD
            }
        }
    }

    fn push(&mut self, bytes: &[u8], to: SocketAddr) {
        if self.to.is_none() {
            self.segment = bytes.len();
            if self.bytes.capacity() == 0 {
                self.bytes = SPARE.with_borrow_mut(std::mem::take);
            }
        }
        self.to = Some(to);
        self.count += 1;
        self.bytes.extend_from_slice(bytes);
    }
}

thread_local! {
    /// The buffer of the last run that was sent.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::tests::recv;

    #[tokio::test]
    async fn runs_keep_order_borders_and_peers() {
        let out = Udp::ephemeral().unwrap();
        let a = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let b = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (to_a, to_b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        let sizes = [
            100, 100, 100, 40, 100, 0, 100, 200, 200, 1400, 1400, 1400, 1, 0, 0, 7,
        ];
        let mut sent = Vec::new();
        for (i, size) in sizes.into_iter().cycle().take(400).enumerate() {
            let datagram = vec![i as u8; size];
            out.queue(&datagram, to_a).unwrap();
            sent.push(datagram);
            if i % 97 == 0 {
                out.queue(b"other", to_b).unwrap();
            }
        }
        out.flush().unwrap();
        let got: Vec<_> = recv(&a, sent.len())
            .await
            .into_iter()
            .map(|(bytes, _)| bytes)
            .collect();
        assert!(got == sent, "every datagram as it was, in order");
        assert_eq!(recv(&b, 5).await.len(), 5);
    }

    #[test]
    fn a_run_takes_equal_ones_and_one_shorter_last() {
        let (to, other) = ("1.2.3.4:5".parse().unwrap(), "1.2.3.4:6".parse().unwrap());
        let mut run = Run::default();
        assert!(run.takes(&[1; 9], to, 64));
        run.push(&[1; 9], to);
        assert!(run.takes(&[1; 9], to, 64) && !run.takes(&[1; 9], to, 1));
        assert!(!run.takes(&[1; 10], to, 64) && !run.takes(&[1; 9], other, 64));
        assert!(!run.takes(&[], to, 64), "an empty datagram is no segment");
        run.push(&[1; 4], to);
        assert!(!run.takes(&[1; 4], to, 64), "the shorter one was the last");
    }
}
