//! KCP listeners cannot be used to flood a third party: measures what is sent to a sender that never
//! answers, and that honest clients are still served.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::{kcptun, loopback_addr, traffic};

use crate::kcp::{client, server};
use crate::setup::start;

/// The number of bytes that the target sends.
const MUCH: usize = 4 << 20;

/// Starts a target that sends first, and much.
fn talker() -> SocketAddr {
    let listener = TcpListener::bind(loopback_addr(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || (&stream).write_all(&vec![7; MUCH]));
        }
    });
    addr
}

/// Returns the first datagram of a client without encryption and error correction: a KCP segment with
/// the smux frame that opens a stream.
fn opening() -> Vec<u8> {
    let words = [7_u32, 0xffff_0051, 0, 0, 0, 8];
    let segment = words.into_iter().flat_map(u32::to_le_bytes);
    let frame = [1, 0, 0, 0, 3, 0, 0, 0];
    segment.chain(frame).collect()
}

#[test]
fn a_datagram_brings_three_times_as_much_at_most() {
    let target = talker();
    let bare = ["--crypt", "null", "--nocomp", "--smuxver", "1"];
    let tunnel = server(target, &bare);
    let keys = "crypt=null&nocomp=true&smuxver=1&datashard=0&parityshard=0";
    let url = format!("kcptun://127.0.0.1:0/{target}?{keys}");
    let listener = start(&["run", &url]);
    let attackers = [tunnel.addr(), listener.addr()].map(|at| {
        let socket = UdpSocket::bind(loopback_addr(0)).unwrap();
        socket.send_to(&opening(), at).unwrap();
        socket
    });
    thread::sleep(Duration::from_millis(1_500));
    for attacker in attackers {
        attacker.set_nonblocking(true).unwrap();
        let (mut packets, mut bytes) = (0, 0);
        let mut buf = [0; 2000];
        while let Ok(len) = attacker.recv(&mut buf) {
            packets += 1;
            bytes += len;
        }
        assert!(packets > 0, "an honest client is answered");
        assert!(
            packets <= 3 && bytes <= 3 * opening().len(),
            "{packets} datagrams, {bytes} bytes for {}",
            opening().len()
        );
    }
    tunnel.stop().unwrap();
    listener.stop().unwrap();
}

#[test]
fn a_target_that_speaks_first_is_heard() {
    let target = talker();
    for options in [
        &["--crypt", "aes", "--smuxver", "1"][..],
        &[
            "--crypt",
            "aes",
            "--smuxver",
            "2",
            "--nocomp",
            "--ds",
            "0",
            "--ps",
            "0",
        ],
    ] {
        let back = server(target, options);
        let debian = kcptun::start_client(back.addr(), options).unwrap();
        let ours = client(back.addr(), options);
        for entry in [debian.addr(), ours.addr()] {
            let begun = Instant::now();
            let mut stream = traffic::connect_directly(entry).unwrap();
            let mut some = vec![0; 50_000];
            stream.read_exact(&mut some).unwrap();
            let took = begun.elapsed();
            // Both ends of smux send something every ten seconds, which must not be the cause.
            assert!(took < Duration::from_secs(6), "{took:?}");
        }
        ours.stop().unwrap();
        back.stop().unwrap();
    }
}
