//! Batched sending: equal datagrams for the same peer are collected and sent with one call.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::{MutexGuard, PoisonError};
use std::thread;

use adit_wire::unmap_ipv4;
use quinn_udp::Transmit;

use super::{BatchUdpSocket, is_icmp_error, portable_io};
use crate::packet::MAX_PAYLOAD;

/// Maximum number of segments per call.
const MAX_SEGMENTS: usize = 64;
/// Minimum number of datagrams in a long run.
const LONG_RUN_DATAGRAMS: usize = 32;
/// Number of datagrams in long runs to this machine after which the thread yields: a receiver with the
/// buffer of a usual system loses all above 90 if it does not run in between. Yielding more often costs too
/// much here.
const YIELD_AFTER: usize = 128;

/// Equal datagrams for one peer, waiting for the rest of their batch.
#[derive(Debug, Default)]
pub(super) struct PendingRun {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
    /// Size of each datagram except the last, which may be shorter.
    segment: usize,
    count: usize,
    /// Number of datagrams sent to this machine in long runs since the thread last yielded.
    unyielded: usize,
}

impl BatchUdpSocket {
    /// Sends a datagram immediately, or returns an error if the socket is full: a datagram does not wait.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the socket is full, [`InvalidInput`](io::ErrorKind::InvalidInput) if the
    /// datagram is longer than UDP allows, and errors of the system. The datagram is lost then.
    pub fn try_send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.queue(bytes, to)?;
        self.flush()
    }

    /// Queues a datagram for the next [`flush`](Self::flush); sends the queued ones first if it does not
    /// fit their run.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the datagram is longer than UDP allows; otherwise the error of sending the
    /// queued datagrams, which are lost, as is this one.
    pub fn queue(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        if bytes.len() > MAX_PAYLOAD {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let to = self.to_socket_family(to);
        let mut run = self.lock_pending();
        if !run.can_append(bytes, to, self.max_segments()) {
            self.send_run(&mut run)?;
        }
        run.append(bytes, to);
        yield_if_due(run);
        Ok(())
    }

    /// Sends the queued datagrams.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the socket is full, and errors of the system. The datagrams are lost then.
    pub fn flush(&self) -> io::Result<()> {
        let mut run = self.lock_pending();
        let sent = self.send_run(&mut run);
        yield_if_due(run);
        sent
    }

    fn lock_pending(&self) -> MutexGuard<'_, PendingRun> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn max_segments(&self) -> usize {
        if portable_io() {
            1
        } else {
            self.state.max_gso_segments().min(MAX_SEGMENTS)
        }
    }

    fn send_run(&self, run: &mut PendingRun) -> io::Result<()> {
        let Some(destination) = run.to.take() else {
            return Ok(());
        };
        let sent = self.send_segments(&run.bytes, run.segment, destination);
        run.record_sent(destination);
        run.bytes.clear();
        if run.bytes.capacity() > 0 {
            // No caller is using the buffer now.
            SPARE.with_borrow_mut(|spare| {
                let bytes = std::mem::take(&mut run.bytes);
                if spare.capacity() < bytes.capacity() {
                    *spare = bytes;
                }
            });
        }
        sent
    }

    /// Sends consecutive datagrams of `segment` bytes each, the last of which may be shorter, without a
    /// copy. Does not wait for [queued](Self::queue) datagrams.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush), at the first run that fails; the rest is not sent.
    pub fn send_all(&self, bytes: &[u8], segment: usize, to: SocketAddr) -> io::Result<()> {
        let to = self.to_socket_family(to);
        let segment = segment.max(1);
        let most = self.max_segments().min(MAX_PAYLOAD / segment).max(1);
        bytes
            .chunks(most * segment)
            .try_for_each(|run| self.send_segments(run, segment, to))
    }

    /// Converts the address to the socket's family.
    fn to_socket_family(&self, to: SocketAddr) -> SocketAddr {
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
            match self.state.try_send(self.socket.udp_socket_ref(), &transmit) {
                // An ICMP answer to an earlier datagram says nothing about this one.
                Err(e) if is_icmp_error(&e) => {
                    self.state.try_send(self.socket.udp_socket_ref(), &transmit)
                }
                sent => sent,
            }
        };
        if bytes.len() <= segment {
            return send(bytes, None);
        }
        match send(bytes, Some(segment)) {
            // The route does not support segmentation: the state has recorded it, and from now on datagrams
            // are sent one by one.
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

/// Yields the thread if that is due, after releasing the run.
fn yield_if_due(mut run: MutexGuard<'_, PendingRun>) {
    let due = run.is_due();
    drop(run);
    if due {
        thread::yield_now();
    }
}

impl PendingRun {
    fn record_sent(&mut self, to: SocketAddr) {
        if self.count >= LONG_RUN_DATAGRAMS && unmap_ipv4(to.ip()).is_loopback() {
            self.unyielded += self.count;
        }
        self.count = 0;
    }

    /// Returns true if the thread is to yield now.
    const fn is_due(&mut self) -> bool {
        let due = self.unyielded >= YIELD_AFTER;
        if due {
            self.unyielded = 0;
        }
        due
    }

    /// Returns true if a datagram may join the run: all are equal in size, only the last may be shorter.
    fn can_append(&self, bytes: &[u8], to: SocketAddr, segments: usize) -> bool {
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

    fn append(&mut self, bytes: &[u8], to: SocketAddr) {
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
    /// The buffer of the run that was sent last.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::tests::recv;

    #[tokio::test]
    async fn runs_keep_order_borders_and_peers() {
        let out = BatchUdpSocket::bind_ephemeral().unwrap();
        let a = BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let b = BatchUdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
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
        let mut run = PendingRun::default();
        assert!(run.can_append(&[1; 9], to, 64));
        run.append(&[1; 9], to);
        assert!(run.can_append(&[1; 9], to, 64) && !run.can_append(&[1; 9], to, 1));
        assert!(!run.can_append(&[1; 10], to, 64) && !run.can_append(&[1; 9], other, 64));
        assert!(
            !run.can_append(&[], to, 64),
            "an empty datagram is not a segment"
        );
        run.append(&[1; 4], to);
        assert!(
            !run.can_append(&[1; 4], to, 64),
            "the shorter one was the last"
        );
    }

    #[test]
    fn the_processor_is_offered_behind_long_runs_to_this_machine() {
        let offered = |to: &str, count: usize| {
            let (mut run, to) = (PendingRun::default(), to.parse().unwrap());
            let runs = 0..12;
            let due = runs.filter(|_| {
                run.count = count;
                run.record_sent(to);
                run.is_due()
            });
            due.count()
        };
        assert_eq!(offered("127.0.0.1:5", 47), 4, "every third one");
        assert_eq!(offered("[::ffff:127.0.0.1]:5", 64), 6);
        assert_eq!(offered("[::1]:5", 31), 0, "short ones");
        assert_eq!(offered("1.2.3.4:5", 64), 0, "elsewhere");
    }
}
