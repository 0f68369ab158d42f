//! A UDP relay that loses, duplicates and reorders, deterministically for a seed and traffic.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

use crate::BytePattern;

/// Rates of faults, in thousandths of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultRates {
    /// Lost.
    pub lost: u16,
    /// Sent twice.
    pub doubled: u16,
    /// Held back until the next one has passed.
    pub late: u16,
}

/// A running relay; dropping it ends it.
#[derive(Debug)]
pub struct LossyRelay {
    addr: SocketAddr,
    shared: Arc<RelayState>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct RelayState {
    stopped: AtomicBool,
    /// True while every datagram is lost.
    cut_off: AtomicBool,
    passed: AtomicU64,
    lost: AtomicU64,
}

/// Interval at which an idle relay checks whether it has ended.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl LossyRelay {
    /// Starts a relay to `upstream`, where each client has a socket of its own.
    pub fn start(upstream: SocketAddr, faults: FaultRates, seed: u64) -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let addr = socket.local_addr()?;
        let shared = Arc::new(RelayState {
            stopped: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let worker_state = Arc::clone(&shared);
        let front = thread::spawn(move || {
            // A socket error ends the relay, and with it the test.
            let _ = forward_datagrams(&socket, upstream, faults, seed, &worker_state);
        });
        Ok(Self {
            addr,
            shared,
            worker: Some(front),
        })
    }

    /// Returns the address that clients send to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Loses every datagram from now on.
    pub fn cut_off(&self) {
        self.shared.cut_off.store(true, Ordering::Relaxed);
    }

    /// Returns the number of datagrams that passed, and of those that were lost.
    #[must_use]
    pub fn packet_counts(&self) -> (u64, u64) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (get(&self.shared.passed), get(&self.shared.lost))
    }
}

impl Drop for LossyRelay {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(front) = self.worker.take() {
            let _ = front.join();
        }
    }
}

fn forward_datagrams(
    socket: &UdpSocket,
    upstream: SocketAddr,
    faults: FaultRates,
    seed: u64,
    shared: &Arc<RelayState>,
) -> io::Result<()> {
    let mut clients: HashMap<SocketAddr, (UdpSocket, FaultInjector)> = HashMap::new();
    let mut buf = vec![0; 65_536];
    socket.set_read_timeout(Some(STOP_CHECK_INTERVAL))?;
    while !shared.stopped.load(Ordering::Relaxed) {
        let Some((len, client)) = skip_transient_error(socket.recv_from(&mut buf))? else {
            continue;
        };
        if !clients.contains_key(&client) {
            let out = UdpSocket::bind("127.0.0.1:0")?;
            out.connect(upstream)?;
            out.set_read_timeout(Some(STOP_CHECK_INTERVAL))?;
            let (back, front) = (out.try_clone()?, socket.try_clone()?);
            let shared = Arc::clone(shared);
            let client_seed = seed.wrapping_add(clients.len() as u64 * 2);
            let mut injector = FaultInjector::new(faults, client_seed.wrapping_add(1));
            thread::spawn(move || {
                let mut buf = vec![0; 65_536];
                while !shared.stopped.load(Ordering::Relaxed) {
                    match skip_transient_error(back.recv(&mut buf)) {
                        Ok(Some(len)) => {
                            injector.forward_with_faults(&buf[..len], &shared, |bytes| {
                                front.send_to(bytes, client)
                            });
                        }
                        Ok(None) => {}
                        Err(_) => return,
                    }
                }
            });
            clients.insert(client, (out, FaultInjector::new(faults, client_seed)));
        }
        if let Some((out, injector)) = clients.get_mut(&client) {
            injector.forward_with_faults(&buf[..len], shared, |bytes| out.send(bytes));
        }
    }
    Ok(())
}

/// Ignores time-outs, and errors that earlier datagrams to a closed port caused.
fn skip_transient_error<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    match result {
        Ok(got) => Ok(Some(got)),
        Err(why) => match why.kind() {
            WouldBlock | TimedOut | ConnectionRefused | Interrupted => Ok(None),
            _ => Err(why),
        },
    }
}

/// The faults of one direction, drawn from its own generator.
#[derive(Debug)]
struct FaultInjector {
    faults: FaultRates,
    rng: BytePattern,
    held: Option<Vec<u8>>,
}

impl FaultInjector {
    const fn new(faults: FaultRates, seed: u64) -> Self {
        Self {
            faults,
            rng: BytePattern::new(seed),
            held: None,
        }
    }

    fn forward_with_faults(
        &mut self,
        bytes: &[u8],
        shared: &RelayState,
        mut send: impl FnMut(&[u8]) -> io::Result<usize>,
    ) {
        let word = self.rng.next_bytes(8);
        let roll =
            |at: usize, share: u16| u16::from_le_bytes([word[at], word[at + 1]]) % 1000 < share;
        if roll(0, self.faults.lost) || shared.cut_off.load(Ordering::Relaxed) {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        shared.passed.fetch_add(1, Ordering::Relaxed);
        if self.held.is_none() && roll(2, self.faults.late) {
            self.held = Some(bytes.to_vec());
            return;
        }
        let copies = if roll(4, self.faults.doubled) { 2 } else { 1 };
        // Datagrams that do not fit into the kernel's buffers are lost as well.
        (0..copies).for_each(|_| drop(send(bytes)));
        if let Some(late) = self.held.take() {
            drop(send(&late));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_happens_in_its_share() {
        let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
        let faults = FaultRates {
            lost: 200,
            doubled: 100,
            late: 100,
        };
        let relay = LossyRelay::start(echo.local_addr().unwrap(), faults, 1).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        echo.set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        let (mut got, mut buf) = (Vec::new(), [0; 16]);
        let mut hear = |echo: &UdpSocket| {
            while let Ok(4) = echo.recv(&mut buf) {
                got.push(u32::from_le_bytes(buf[..4].try_into().unwrap()));
            }
        };
        for n in 0..1000_u32 {
            client.send_to(&n.to_le_bytes(), relay.addr()).unwrap();
            // No more datagrams in flight than the sockets hold.
            if n % 50 == 49 {
                let deadline = std::time::Instant::now() + Duration::from_secs(5);
                while relay.packet_counts().0 + relay.packet_counts().1 <= u64::from(n)
                    && std::time::Instant::now() < deadline
                {
                    thread::sleep(Duration::from_millis(1));
                }
                echo.set_nonblocking(true).unwrap();
                hear(&echo);
            }
        }
        echo.set_nonblocking(false).unwrap();
        hear(&echo);
        let unordered = got.windows(2).filter(|pair| pair[0] > pair[1]).count();
        let doubled = got.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let mut unique = got.clone();
        unique.sort_unstable();
        unique.dedup();
        assert!((700..900).contains(&unique.len()), "{}", unique.len());
        assert!((30..150).contains(&unordered), "{unordered}");
        assert!((30..150).contains(&doubled), "{doubled}");
        let (passed, lost) = relay.packet_counts();
        assert_eq!(passed + lost, 1000);
        relay.cut_off();
        client.send_to(b"gone", relay.addr()).unwrap();
        assert!(echo.recv(&mut [0; 16]).is_err());
    }
}
