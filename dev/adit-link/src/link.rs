//! Two namespaces, a TUN device in each, and a thread per direction.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::address_translation::{is_v4, rewrite_destination, rewrite_source};
use crate::offload::{HEADER_LEN, MAX_PACKET_LEN, has_partial_checksum, wire_len};
use crate::{DelayLine, LinkPath, NetworkNamespace, PacketCounts};

/// Address of the near end.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Address of the remote end.
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Name of both interfaces. IPv6 is off, so that no neighbour discovery is among the packets.
const DEVICE: &str = "link0";
/// Packets that the kernel keeps for a thread that is late.
const KERNEL_QUEUE: u32 = 10_000;
/// Interval at which an idle direction checks whether the link has ended.
const SHUTDOWN_POLL: Duration = Duration::from_millis(50);
/// Time for which packets accumulate once there are some. At 1 Gbit/s a packet arrives every 12 µs,
/// and a thread that wakes for each of them takes the processor time that the ends of the link
/// need.
const COALESCE_DELAY: Duration = Duration::from_micros(200);
/// The same for a link with offload: the time that a group of 64 KiB takes there.
const GROUP_COALESCE_DELAY: Duration = Duration::from_micros(500);
/// Packets read before those that are due are checked again.
const BATCH: usize = 256;

/// A running link. Dropping it ends it; the namespaces end with the last process in them.
#[derive(Debug)]
pub struct NamespaceLink {
    near: NetworkNamespace,
    far: NetworkNamespace,
    shared: Arc<LinkState>,
    threads: Vec<JoinHandle<()>>,
}

/// Packet counters of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkCounts {
    /// From the near end to the remote end.
    pub near_to_far: PacketCounts,
    /// From the remote end to the near end.
    pub far_to_near: PacketCounts,
}

#[derive(Debug, Default)]
struct LinkState {
    is_stopped: AtomicBool,
    is_cut: AtomicBool,
    /// Address under which the remote end sees the near one; 0 means its own address.
    translated_addr: AtomicU32,
    near_to_far: AtomicPacketCounts,
    far_to_near: AtomicPacketCounts,
}

#[derive(Debug, Default)]
struct AtomicPacketCounts {
    passed: AtomicU64,
    lost: AtomicU64,
    dropped: AtomicU64,
}

impl NamespaceLink {
    /// Starts a link with the same properties in both directions. The seed decides which packets
    /// are lost.
    ///
    /// # Errors
    /// Fails without root privileges, without `ip`, if the kernel has no TUN devices, and if the
    /// path has `offload` together with loss, duplication or late packets.
    pub fn start(path: LinkPath, seed: u64) -> Result<Self> {
        ensure!(
            !path.offload || (path.lost, path.doubled, path.late) == (0, 0, 0),
            "a link with offload cannot lose, double or delay some of its packets: they are \
             groups of segments"
        );
        let (near, far) = (NetworkNamespace::create()?, NetworkNamespace::create()?);
        let near_tun = open_device(&near, NEAR, path.offload)?;
        let far_tun = open_device(&far, FAR, path.offload)?;
        let shared = Arc::new(LinkState::default());
        let (near_too, far_too) = (near_tun.try_clone()?, far_tun.try_clone()?);
        let line = |seed| DelayLine::new(path, seed);
        let directions = [
            (Direction::NearToFar, near_tun, far_tun, line(seed)),
            (Direction::FarToNear, far_too, near_too, line(!seed)),
        ];
        let threads = directions.map(|(way, from, to, line)| {
            let shared = Arc::clone(&shared);
            // A device error ends the direction, and with it everything that needs the link.
            thread::spawn(move || drop(forward_packets(way, from, to, line, path.offload, &shared)))
        });
        Ok(Self {
            near,
            far,
            shared,
            threads: threads.into(),
        })
    }

    /// Returns the namespace that has [`NEAR`].
    #[must_use]
    pub const fn near(&self) -> &NetworkNamespace {
        &self.near
    }

    /// Returns the namespace that has [`FAR`].
    #[must_use]
    pub const fn far(&self) -> &NetworkNamespace {
        &self.far
    }

    /// Starts or stops losing every packet.
    pub fn set_cut(&self, cut: bool) {
        self.shared.is_cut.store(cut, Ordering::Relaxed);
    }

    /// Shows the near end to the remote end under this address from now on; packets to the old address
    /// no longer come back. `None` restores its own address.
    pub fn set_near_address(&self, address: Option<Ipv4Addr>) {
        let bits = address.map_or(0, u32::from);
        self.shared.translated_addr.store(bits, Ordering::Relaxed);
    }

    /// Returns the packet counters so far.
    #[must_use]
    pub fn counts(&self) -> LinkCounts {
        LinkCounts {
            near_to_far: self.shared.near_to_far.load_counts(),
            far_to_near: self.shared.far_to_near.load_counts(),
        }
    }
}

impl Drop for NamespaceLink {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl AtomicPacketCounts {
    fn store_counts(&self, tally: PacketCounts) {
        self.passed.store(tally.passed, Ordering::Relaxed);
        self.lost.store(tally.lost, Ordering::Relaxed);
        self.dropped.store(tally.dropped, Ordering::Relaxed);
    }

    fn load_counts(&self) -> PacketCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PacketCounts {
            passed: get(&self.passed),
            lost: get(&self.lost),
            dropped: get(&self.dropped),
        }
    }
}

fn open_device(space: &NetworkNamespace, address: Ipv4Addr, offload: bool) -> Result<File> {
    let tun = space.run_inside(|| crate::tun::open_tun(DEVICE, offload));
    let tun = tun.context("cannot create a TUN device")?;
    space
        .run_inside(|| std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"))
        .ok();
    space.run_ip(&format!("addr add {address}/24 dev {DEVICE}"))?;
    space.run_ip(&format!("link set {DEVICE} txqueuelen {KERNEL_QUEUE} up"))?;
    Ok(tun)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    NearToFar,
    FarToNear,
}

/// Moves packets in one direction until the link ends. With `offload`, a header precedes each
/// packet and is passed on with it: the other device takes a group as one that its network card has
/// assembled.
fn forward_packets(
    way: Direction,
    mut from: File,
    mut to: File,
    mut line: DelayLine,
    offload: bool,
    shared: &LinkState,
) -> Result<()> {
    let began = Instant::now();
    let mut buf = vec![0; MAX_PACKET_LEN];
    let (head, grain) = if offload {
        (HEADER_LEN, GROUP_COALESCE_DELAY)
    } else {
        (0, COALESCE_DELAY)
    };
    let counters = match way {
        Direction::NearToFar => &shared.near_to_far,
        Direction::FarToNear => &shared.far_to_near,
    };
    let mut quiet = true;
    while !shared.is_stopped.load(Ordering::Relaxed) {
        if quiet {
            wait_readable(
                &from,
                line.next_arrival()
                    .map(|due| due.saturating_sub(began.elapsed())),
            )?;
        } else {
            thread::sleep(grain);
        }
        quiet = true;
        for _ in 0..BATCH {
            let len = match from.read(&mut buf) {
                Ok(len) => len,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) => return Err(why.into()),
            };
            quiet = false;
            let bytes = buf.get_mut(..len).unwrap_or_default();
            let Some((header, packet)) = bytes.split_at_mut_checked(head) else {
                continue;
            };
            if is_v4(packet) && translate_address(way, packet, has_partial_checksum(header), shared)
            {
                let size = wire_len(header, packet);
                let cut = shared.is_cut.load(Ordering::Relaxed);
                line.send(began.elapsed(), bytes, size, cut);
            }
        }
        counters.store_counts(line.counts());
        while let Some(packet) = line.recv(began.elapsed()) {
            quiet = false;
            // Packets that the kernel does not take are lost.
            let _ = to.write(&packet);
        }
    }
    Ok(())
}

/// Waits until a packet is readable or the next one is due.
fn wait_readable(from: &File, due: Option<Duration>) -> Result<()> {
    let wait = Timespec::try_from(due.unwrap_or(SHUTDOWN_POLL).min(SHUTDOWN_POLL))?;
    match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Applies the near end's visible address. Returns false if the destination belongs to no host any
/// more.
fn translate_address(way: Direction, packet: &mut [u8], partial: bool, shared: &LinkState) -> bool {
    let seen = match shared.translated_addr.load(Ordering::Relaxed) {
        0 => return true,
        bits => Ipv4Addr::from(bits),
    };
    match way {
        Direction::NearToFar => {
            rewrite_source(packet, NEAR, seen, partial);
            true
        }
        Direction::FarToNear => rewrite_destination(packet, seen, NEAR, partial),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::run_as_root;

    const MS: Duration = Duration::from_millis(1);

    fn socket(space: &NetworkNamespace, at: Ipv4Addr) -> UdpSocket {
        let socket = space.run_inside(|| UdpSocket::bind((at, 0))).unwrap();
        socket.set_read_timeout(Some(300 * MS)).unwrap();
        socket
    }

    #[test]
    fn packets_are_delayed_lost_and_cut() {
        if !run_as_root("link::tests::packets_are_delayed_lost_and_cut") {
            return;
        }
        let link = NamespaceLink::start(LinkPath::new(40 * MS, 200), 1).unwrap();
        let (near, far) = (socket(link.near(), NEAR), socket(link.far(), FAR));
        let to = far.local_addr().unwrap();
        let mut got = 0;
        for number in 0..200u32 {
            near.send_to(&number.to_be_bytes(), to).unwrap();
        }
        let (mut buf, began) = ([0; 16], Instant::now());
        while far.recv(&mut buf).is_ok() {
            if got == 0 {
                assert!(began.elapsed() < 150 * MS, "{:?}", began.elapsed());
            }
            got += 1;
        }
        assert!((130..190).contains(&got), "{got}");
        let there = link.counts().near_to_far;
        assert_eq!((there.passed, there.lost + there.passed), (got, 200));
        link.set_cut(true);
        near.send_to(b"gone", to).unwrap();
        assert!(far.recv(&mut buf).is_err());
    }

    #[test]
    fn an_end_is_seen_under_another_address() {
        if !run_as_root("link::tests::an_end_is_seen_under_another_address") {
            return;
        }
        let link = NamespaceLink::start(LinkPath::new(10 * MS, 0), 1).unwrap();
        let (near, far) = (socket(link.near(), NEAR), socket(link.far(), FAR));
        let mut buf = [0; 16];
        near.send_to(b"a", far.local_addr().unwrap()).unwrap();
        let (_, before) = far.recv_from(&mut buf).unwrap();
        assert_eq!(before.ip(), NEAR);
        let other = Ipv4Addr::new(10, 77, 0, 99);
        link.set_near_address(Some(other));
        near.send_to(b"b", far.local_addr().unwrap()).unwrap();
        let (_, after) = far.recv_from(&mut buf).unwrap();
        assert_eq!((after.ip(), after.port()), (other.into(), before.port()));
        far.send_to(b"old", before).unwrap();
        assert!(near.recv(&mut buf).is_err());
        far.send_to(b"new", after).unwrap();
        assert_eq!(near.recv(&mut buf).unwrap(), 3);
        // TCP checksums are adjusted too.
        let listener = link
            .far()
            .run_inside(|| TcpListener::bind((FAR, 0)))
            .unwrap();
        let at = listener.local_addr().unwrap();
        let stream = link
            .near()
            .run_inside(|| TcpStream::connect_timeout(&at, 1000 * MS));
        let (_, from) = listener.accept().unwrap();
        assert_eq!(
            (from.ip(), stream.unwrap().peer_addr().unwrap()),
            (other.into(), at)
        );
    }

    #[test]
    fn segments_travel_together_at_the_same_rate() {
        if !run_as_root("link::tests::segments_travel_together_at_the_same_rate") {
            return;
        }
        const SEGMENT: usize = 1448;
        let mut path = LinkPath::new(10 * MS, 0).with_rate(1_000_000_000, 20 * MS);
        path.offload = true;
        let link = NamespaceLink::start(path, 1).unwrap();
        let other = Ipv4Addr::new(10, 77, 0, 99);
        link.set_near_address(Some(other));
        let content: Vec<u8> = (0..8_000_000u32).flat_map(u32::to_ne_bytes).collect();
        let listener = link
            .far()
            .run_inside(|| TcpListener::bind((FAR, 0)))
            .unwrap();
        let at = listener.local_addr().unwrap();
        let read = |mut stream: &TcpStream| {
            let mut got = vec![0; content.len()];
            stream.set_read_timeout(Some(5000 * MS)).unwrap();
            stream.read_exact(&mut got).unwrap();
            assert!(got == content);
        };
        let began = Instant::now();
        thread::scope(|scope| {
            let near = scope.spawn(|| {
                let connect = || TcpStream::connect_timeout(&at, 1000 * MS);
                let mut stream = link.near().run_inside(connect).unwrap();
                stream.write_all(&content).unwrap();
                read(&stream);
            });
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), other);
            read(&stream);
            stream.write_all(&content).unwrap();
            near.join().unwrap();
        });
        let took = began.elapsed();
        let segments = content.len() / SEGMENT;
        let least = path.transmit_time(u64::try_from(2 * segments * 1500).unwrap());
        assert!(took >= least, "{took:?}, at least {least:?}");
        let LinkCounts {
            near_to_far: there,
            far_to_near: back,
        } = link.counts();
        for tally in [there, back] {
            assert!(
                tally.passed < u64::try_from(segments).unwrap() / 4,
                "{tally:?}"
            );
        }
    }

    #[test]
    fn groups_are_not_lost_by_chance() {
        for fault in 0..3 {
            let mut path = LinkPath::new(10 * MS, 0);
            path.offload = true;
            *[&mut path.lost, &mut path.doubled, &mut path.late][fault] = 1;
            let why = NamespaceLink::start(path, 1).unwrap_err().to_string();
            assert!(why.contains("offload"), "{why}");
        }
    }

    #[test]
    fn nothing_of_a_link_is_left() {
        if !run_as_root("link::tests::nothing_of_a_link_is_left") {
            return;
        }
        let link = NamespaceLink::start(LinkPath::new(10 * MS, 0), 1).unwrap();
        let socket = socket(link.far(), FAR);
        drop(link);
        // The namespace lives on with its socket, but its interface is gone.
        // The kernel removes it in its own time.
        let send = || socket.send_to(b"x", (NEAR, 9)).err();
        let why = (0..100).find_map(|_| {
            send().or_else(|| {
                thread::sleep(Duration::from_millis(20));
                None
            })
        });
        let why = why.expect("the interface is still there");
        assert!(matches!(why.raw_os_error(), Some(101 | 22 | 99)), "{why}");
    }
}
