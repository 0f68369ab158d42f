//! What a prober without the key sees of a Shadowsocks port: nothing, whatever it tries.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use adit_interop::hostile::{Ending, Manner, Reaction, probe};
use adit_interop::origin::Origin;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128, Method, Peer};
use adit_interop::tap::Tap;
use adit_interop::{Pattern, traffic};

use crate::setup::{server, start};

/// Around the ends of salt, sealed length and sealed header of both editions, and a 221 that real
/// probers send.
const LENGTHS: [usize; 17] = [
    0, 1, 10, 16, 33, 42, 43, 44, 50, 51, 59, 60, 75, 76, 200, 221, 3000,
];

/// One probe and what came of it.
pub(crate) type Seen = (String, Reaction);

/// Sends all probes at once, since each takes its time; gives what each saw.
pub(crate) fn send_all(
    addr: SocketAddr,
    probes: Vec<(String, Vec<u8>)>,
    ending: Ending,
) -> Vec<Seen> {
    let patience = Duration::from_secs(3);
    let send = |(what, bytes): (String, Vec<u8>)| {
        thread::spawn(move || {
            let manner = if what.ends_with("slowly") {
                Manner::ByteByByte
            } else {
                Manner::AtOnce
            };
            (what, probe(addr, &bytes, manner, ending, patience).unwrap())
        })
    };
    let running: Vec<_> = probes.into_iter().map(send).collect();
    running
        .into_iter()
        .map(|probe| probe.join().unwrap())
        .collect()
}

/// Garbage of every length, and a genuine first flight replayed, altered and cut.
pub(crate) fn probes(genuine: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for len in LENGTHS {
        let garbage = Pattern::new(len as u64 + 1).take(len);
        all.push((format!("{len} bytes"), garbage.clone()));
        if len <= 200 {
            all.push((format!("{len} bytes slowly"), garbage));
        }
    }
    all.push(("an exact replay".to_owned(), genuine.to_vec()));
    all.push(("a slow replay, slowly".to_owned(), genuine.to_vec()));
    all.push(("a doubled replay".to_owned(), genuine.repeat(2)));
    for place in [0, 7, 15, 16, 20, 32, 40, 50, 62] {
        let mut altered = genuine.to_vec();
        altered[place] ^= 1;
        all.push((format!("a replay with byte {place} changed"), altered));
    }
    for len in [20, 43, 50, 60] {
        all.push((format!("a replay cut at {len}"), genuine[..len].to_vec()));
    }
    all
}

/// A genuine first flight to our server: from their client or ours, through a tap.
fn record(method: Method, theirs: Option<Peer>) -> (adit_interop::Adit, Vec<u8>) {
    let origin = Origin::start().unwrap();
    let ours = server(method);
    let tap = Tap::start(ours.addr()).unwrap();
    match theirs {
        Some(peer) => {
            let client = peer.forwarder(method, tap.addr(), origin.addr()).unwrap();
            traffic::one_byte(traffic::dial(client.addr()).unwrap()).unwrap();
        }
        None => {
            let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
            let client = start(&["run", &target, &method.url(tap.addr())]);
            traffic::one_byte(traffic::dial(client.addr()).unwrap()).unwrap();
            client.stop().unwrap();
        }
    }
    let genuine = tap.seen().into_iter().next().unwrap();
    assert!(genuine.len() > 63, "a recording of {} bytes", genuine.len());
    (ours, genuine)
}

/// SEC-P1 to SEC-P3: zero bytes, and one reaction for every cause.
fn one_reaction_for_all(method: Method, theirs: Option<Peer>) {
    let (ours, genuine) = record(method, theirs);
    let origin = Origin::start().unwrap();
    for ending in [Ending::Hold, Ending::HalfClose] {
        let seen = send_all(ours.addr(), probes(&genuine), ending);
        let wanted = seen[1].1;
        assert!(
            !matches!(wanted, Reaction::Answer(_)),
            "{ending:?}: {:?}",
            seen[1]
        );
        for (what, reaction) in &seen {
            assert_eq!(*reaction, wanted, "{ending:?}: {what}, others {wanted:?}");
        }
    }
    // And a good client is still served.
    let peer = theirs.unwrap_or(Peer::SingBox);
    let client = peer.forwarder(method, ours.addr(), origin.addr()).unwrap();
    traffic::one_byte(traffic::dial(client.addr()).unwrap()).unwrap();
    ours.stop().unwrap();
}

#[test]
fn one_reaction_for_all_probes_of_the_2022_edition() {
    one_reaction_for_all(BLAKE3_AES_128, Some(Peer::SingBox));
}

#[test]
fn one_reaction_for_all_probes_of_the_2022_edition_after_our_client() {
    one_reaction_for_all(BLAKE3_AES_128, None);
}

#[test]
fn one_reaction_for_all_probes_of_sip004() {
    one_reaction_for_all(AES_128, Some(Peer::Libev));
}

/// What the server itself has sent must not open it either (SEC-R6).
#[test]
fn datagrams_of_a_prober_are_never_answered() {
    for method in [BLAKE3_AES_128, AES_128] {
        let origin = Origin::start().unwrap();
        let ours = server(method);
        let prober = UdpSocket::bind("127.0.0.1:0").unwrap();
        prober.connect(ours.addr()).unwrap();
        for len in [0, 1, 2, 15, 16, 17, 32, 43, 48, 60, 512, 1390, 60_000] {
            prober
                .send(&Pattern::new(len as u64 + 9).take(len))
                .unwrap();
        }
        prober
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        assert!(prober.recv(&mut [0; 64]).is_err(), "{}", method.name);
        let client = Peer::SingBox
            .forwarder(method, ours.addr(), origin.addr())
            .unwrap();
        traffic::datagrams(&traffic::Entry::open(client.addr()).unwrap()).unwrap();
        ours.stop().unwrap();
    }
}
