//! A UDP relay that loses, duplicates and reorders, deterministically for a seed and traffic.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;

use crate::Pattern;

/// Rates of faults, in thousandths of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Lost.
    pub lost: u16,
    /// Sent twice.
    pub doubled: u16,
    /// Held back until the next one has passed.
    pub late: u16,
}

/// A running relay; dropping it ends it.
#[derive(Debug)]
pub struct Lossy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    front: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    over: AtomicBool,
    /// True while every datagram is lost.
    cut: AtomicBool,
    passed: AtomicU64,
    lost: AtomicU64,
}

/// Interval at which an idle relay checks whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

impl Lossy {
    /// Starts a relay to `upstream`, where each client has a socket of its own.
    pub fn start(upstream: SocketAddr, faults: Faults, seed: u64) -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let addr = socket.local_addr()?;
        let shared = Arc::new(Shared {
            over: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let front = thread::spawn(move || {
            // A socket error ends the relay, and with it the test.
            let _ = forward(&socket, upstream, faults, seed, &theirs);
        });
        Ok(Self {
            addr,
            shared,
            front: Some(front),
        })
    }

    /// Returns the address that clients send to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Loses every datagram from now on.
    pub fn cut(&self) {
        self.shared.cut.store(true, Ordering::Relaxed);
    }

    /// Returns the number of datagrams that passed, and of those that were lost.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (get(&self.shared.passed), get(&self.shared.lost))
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(front) = self.front.take() {
            let _ = front.join();
        }
    }
}

fn forward(
    socket: &UdpSocket,
    upstream: SocketAddr,
    faults: Faults,
    seed: u64,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut ways: HashMap<SocketAddr, (UdpSocket, Fate)> = HashMap::new();
    let mut buf = vec![0; 65_536];
    socket.set_read_timeout(Some(LOOK))?;
    while !shared.over.load(Ordering::Relaxed) {
        let Some((len, client)) = received(socket.recv_from(&mut buf))? else {
            continue;
        };
        if !ways.contains_key(&client) {
            let out = UdpSocket::bind("127.0.0.1:0")?;
            out.connect(upstream)?;
            out.set_read_timeout(Some(LOOK))?;
            let (back, near) = (out.try_clone()?, socket.try_clone()?);
            let shared = Arc::clone(shared);
            let number = seed.wrapping_add(ways.len() as u64 * 2);
            let mut fate = Fate::new(faults, number.wrapping_add(1));
            thread::spawn(move || {
                let mut buf = vec![0; 65_536];
                while !shared.over.load(Ordering::Relaxed) {
                    match received(back.recv(&mut buf)) {
                        Ok(Some(len)) => {
                            fate.pass(&buf[..len], &shared, |bytes| near.send_to(bytes, client));
                        }
                        Ok(None) => {}
                        Err(_) => return,
                    }
                }
            });
            ways.insert(client, (out, Fate::new(faults, number)));
        }
        if let Some((out, fate)) = ways.get_mut(&client) {
            fate.pass(&buf[..len], shared, |bytes| out.send(bytes));
        }
    }
    Ok(())
}

/// Ignores time-outs, and errors that earlier datagrams to a closed port caused.
fn received<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    match result {
        Ok(got) => Ok(Some(got)),
        Err(why) => match why.kind() {
            WouldBlock | TimedOut | ConnectionRefused | Interrupted => Ok(None),
            _ => Err(why),
        },
    }
}

/// The fate of the datagrams of one direction.
#[derive(Debug)]
struct Fate {
    faults: Faults,
    dice: Pattern,
    held: Option<Vec<u8>>,
}

impl Fate {
    const fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            dice: Pattern::new(seed),
            held: None,
        }
    }

    fn pass(
        &mut self,
        bytes: &[u8],
        shared: &Shared,
        mut send: impl FnMut(&[u8]) -> io::Result<usize>,
    ) {
        let word = self.dice.take(8);
        let roll =
            |at: usize, share: u16| u16::from_le_bytes([word[at], word[at + 1]]) % 1000 < share;
        if roll(0, self.faults.lost) || shared.cut.load(Ordering::Relaxed) {
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
        let faults = Faults {
            lost: 200,
            doubled: 100,
            late: 100,
        };
        let relay = Lossy::start(echo.local_addr().unwrap(), faults, 1).unwrap();
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
                let patience = std::time::Instant::now() + Duration::from_secs(5);
                while relay.counts().0 + relay.counts().1 <= u64::from(n)
                    && std::time::Instant::now() < patience
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
        let (passed, lost) = relay.counts();
        assert_eq!(passed + lost, 1000);
        relay.cut();
        client.send_to(b"gone", relay.addr()).unwrap();
        assert!(echo.recv(&mut [0; 16]).is_err());
    }
}
