//! Requests that one process has accepted are replays for the others.

use std::net::SocketAddr;

use adit_interop::TEST_TIMEOUT;
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128};
use adit_interop::socks_client::Destination;
use rustix::process::Signal;

use super::{Lineage, signal, wait_until};
use crate::associations::{Session, chain, client, whoami};
use crate::reload::flows::EchoStream;
use crate::replay;
use crate::setup::{ALLOW, start};

/// Returns the first flight of a client of adit to this server.
fn record(
    hop: impl Fn(SocketAddr) -> String,
    server: SocketAddr,
    origin: &OriginServer,
) -> Vec<u8> {
    let tap = RecordingRelay::start(server).unwrap();
    let client = start(&["run", "socks5://127.0.0.1:0", &hop(tap.addr())]);
    let target = Destination::Addr(origin.addr());
    let mut stream = EchoStream::open(client.addr(), &target).unwrap();
    stream.exchange(b"recorded").unwrap();
    drop(stream);
    client.stop().unwrap();
    tap.requests().into_iter().next().unwrap()
}

/// A request and a packet that the first process has accepted are replays for its successors, which serve new ones
/// immediately: no time is refused because a process has just started.
#[test]
fn what_was_recorded_is_refused_after_an_upgrade() {
    for method in [BLAKE3_AES_128, AES_128] {
        let origin = OriginServer::start().unwrap();
        let mut back = replay::serve(method, None);
        let mut lineage = Lineage::of(back.process());
        let hop = |at| method.url(at);
        let seen = record(hop, back.addr(), &origin);
        let keys = chain(method, &[method.key]);
        let mut session = Session::new(&keys);
        let packet = session.seal(b"?", whoami());
        let socket = client(back.addr());
        assert!(replay::is_answered_on(&socket, &packet));
        for _ in 0..2 {
            lineage.upgrade_by_signal(back.process());
            let fresh = record(hop, back.addr(), &origin);
            assert_ne!(fresh, seen);
            assert!(!replay::accepts(back.addr(), &seen, &origin), "{method:?}");
            assert!(!replay::accepts(back.addr(), &fresh, &origin), "{method:?}");
            assert!(!replay::is_answered_on(&socket, &packet), "{method:?}");
            let next = session.seal(b"?", whoami());
            assert!(replay::is_answered_on(&socket, &next), "the client goes on");
        }
        // The association continues in the first process; the next one serves it as soon as that has ended.
        signal(lineage.ids[0], Signal::INT);
        back.process().wait(TEST_TIMEOUT).unwrap();
        let next = session.seal(b"?", whoami());
        let restarted = || {
            assert!(!replay::is_answered_on(&socket, &packet), "{method:?}");
            replay::is_answered_on(&socket, &next)
        };
        wait_until(restarted, "the session does not start again");
        lineage.stop(back.process());
    }
}

/// The same of ShadowsocksR.
#[test]
fn a_recorded_request_of_shadowsocksr_is_refused_after_an_upgrade() {
    let origin = OriginServer::start().unwrap();
    let hop = |at| format!("ssr://aes-128-ctr:word@{at}?protocol=auth_aes128_sha1");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut back = start(&["run", &format!("{}&{ALLOW}", hop(any))]);
    let mut lineage = Lineage::of(back.process());
    let mut seen = vec![record(hop, back.addr(), &origin)];
    for _ in 0..2 {
        lineage.upgrade_by_signal(back.process());
        seen.push(record(hop, back.addr(), &origin));
        for request in &seen {
            assert!(!replay::accepts(back.addr(), request, &origin));
        }
    }
    lineage.stop(back.process());
}
