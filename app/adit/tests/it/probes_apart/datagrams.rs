//! Packets of a prober, none of which gets an answer (SEC-P5).

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use adit_interop::BytePattern;

use super::kinds::KINDS;

/// Anything that arrives in this time after the last probe would be an answer.
const PATIENCE: Duration = Duration::from_millis(800);
/// Number of packets that fits into any receive buffer.
const BURST: usize = 32;

/// Returns the variations of a recorded packet and its answer.
fn packets(request: &[u8], answer: &[u8]) -> Vec<Vec<u8>> {
    let lengths = (0..=80).chain((81..=1500).step_by(7)).chain([60_000]);
    let garbage = |len: usize| BytePattern::new(len as u64 + 1).next_bytes(len);
    let mut all: Vec<Vec<u8>> = lengths.map(garbage).collect();
    for packet in [request, answer] {
        all.extend((0..packet.len()).map(|cut| packet[..cut].to_vec()));
        all.extend((0..packet.len()).map(|place| {
            let mut bytes = packet.to_vec();
            bytes[place] ^= 1;
            bytes
        }));
        all.push(packet.repeat(2));
        all.extend(vec![packet.to_vec(); 20]);
    }
    all
}

#[test]
fn no_packet_of_a_prober_is_answered() {
    thread::scope(|scope| {
        for kind in &KINDS {
            scope.spawn(|| {
                let port = kind.start("reject=drain");
                let (request, answer) = port.record_packet();
                let prober = UdpSocket::bind("127.0.0.1:0").unwrap();
                prober.connect(port.addr()).unwrap();
                for burst in packets(&request, &answer).chunks(BURST) {
                    for packet in burst {
                        prober.send(packet).unwrap();
                    }
                    thread::sleep(Duration::from_millis(4));
                }
                prober.set_read_timeout(Some(PATIENCE)).unwrap();
                // An ICMP error would be another error.
                let heard = prober.recv(&mut [0; 2048]).map_err(|why| why.kind());
                assert_eq!(heard, Err(ErrorKind::WouldBlock), "{}", kind.name);
                port.record_packet();
                port.stop();
            });
        }
    });
}
