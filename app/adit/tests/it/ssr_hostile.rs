//! ShadowsocksR against clients without the key, with a recording, a wrong clock, or malicious input.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use adit_interop::hostile_clients::{
    AfterWrite, Reaction, WriteMode, probe_server, watch_reaction,
};
use adit_interop::http_server::HttpServer;
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::ssr::SsrSetup;
use adit_interop::{AditProcess, BytePattern, external_tools, traffic};

use crate::probes::{probes, send_all};
use crate::setup::bin;
use crate::ssr::{forwarder, server};

/// Returns a genuine first flight to a server of adit.
fn record(ours: &AditProcess, setup: &SsrSetup<'_>) -> Vec<u8> {
    let origin = OriginServer::start().unwrap();
    let tap = RecordingRelay::start(ours.addr()).unwrap();
    let client = forwarder(&setup.url(tap.addr()), origin.addr());
    traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
    client.stop().unwrap();
    tap.requests().into_iter().next().unwrap()
}

/// SEC-P1 to SEC-P3 where a protocol authenticates: zero bytes, and the same reaction for every
/// cause. An open session continues meanwhile.
#[test]
fn one_reaction_for_all_probes() {
    for (method, protocol, obfs) in [
        ("aes-256-ctr", "auth_sha1_v4", "plain"),
        ("aes-256-ctr", "auth_aes128_fast", "http_simple"),
        ("none", "auth_chain_a", "tls1.2_ticket_auth"),
        ("aes-256-ctr", "origin", "go_quiet"),
    ] {
        let setup = SsrSetup::new(method, protocol, obfs);
        let ours = server(&setup, "");
        let genuine = record(&ours, &setup);
        let origin = OriginServer::start().unwrap();
        let front = forwarder(&setup.url(ours.addr()), origin.addr());
        let mut open = traffic::connect_directly(front.addr()).unwrap();
        open.write_all(b"ECHO\n").unwrap();
        let mut echo = || {
            open.write_all(b"x").unwrap();
            open.read_exact(&mut [0]).unwrap();
        };
        echo();
        for (ending, wanted) in [
            (AfterWrite::Hold, Reaction::Silence),
            (AfterWrite::HalfClose, Reaction::End),
        ] {
            for (what, seen) in send_all(ours.addr(), probes(&genuine), ending) {
                assert_eq!(seen, wanted, "{setup:?} {ending:?}: {what}");
            }
        }
        echo();
        traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        ours.stop().unwrap();
    }
}

/// `redirect` forwards unauthenticated peers to a real server, which receives all their bytes.
#[test]
fn strangers_are_taken_to_a_decoy() {
    let page = b"the page of a decoy server";
    let web = HttpServer::start(&[("/", "text/plain", page)]).unwrap();
    let decoy = format!(
        "&redirect=no-such-word%23192.0.2.1:9,bing.com%23127.0.0.1:{}",
        web.port()
    );
    let request = b"GET / HTTP/1.1\r\nHost: bing.com\r\nConnection: close\r\n\r\n";
    for obfs in ["plain", "http_simple", "tls1.2_ticket_auth", "go_quiet"] {
        let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", obfs);
        let ours = server(&setup, &decoy);
        let mut stranger = traffic::connect_directly(ours.addr()).unwrap();
        stranger.write_all(request).unwrap();
        let mut seen = Vec::new();
        stranger.read_to_end(&mut seen).unwrap();
        let text = String::from_utf8_lossy(&seen);
        assert!(
            text.starts_with("HTTP/1.") && seen.ends_with(page),
            "{obfs}: {text}"
        );
        // If no pattern matches, the policy applies.
        let garbage = BytePattern::new(3).next_bytes(600);
        let patience = Duration::from_secs(1);
        let seen = probe_server(
            ours.addr(),
            &garbage,
            WriteMode::OneWrite,
            AfterWrite::Hold,
            patience,
        );
        assert_eq!(seen.unwrap(), Reaction::Silence, "{obfs}");
        // A client is not forwarded.
        let origin = OriginServer::start().unwrap();
        let front = forwarder(&setup.url(ours.addr()), origin.addr());
        traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        ours.stop().unwrap();
    }
}

/// A recorded request with HTTP obfuscation is unauthenticated too: the decoy answers, not adit.
#[test]
fn a_replay_is_taken_to_the_decoy_as_it_came() {
    let origin = OriginServer::start().unwrap();
    let tap = RecordingRelay::start(origin.addr()).unwrap();
    let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "http_simple");
    let ours = server(&setup, &format!("&redirect={}", tap.addr()));
    let genuine = record(&ours, &setup);
    let mut replay = traffic::connect_directly(ours.addr()).unwrap();
    replay.write_all(&genuine).unwrap();
    watch_reaction(&mut replay, Duration::from_secs(1)).unwrap();
    let seen = tap.requests();
    assert_eq!(seen.len(), 1);
    assert!(seen[0] == genuine, "the decoy got other bytes");
    ours.stop().unwrap();
}

/// Returns true if a client with a wrong clock is served.
fn served_at(setup: &SsrSetup<'_>, server: SocketAddr, offset: &str) -> bool {
    let origin = OriginServer::start().unwrap();
    let mut command = Command::new(bin());
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    command.args(["run", &target, &setup.url(server)]);
    external_tools::shift_clock(&mut command, offset).unwrap();
    let front = AditProcess::start_command(command, 1).unwrap();
    let stream = traffic::connect_directly(front.addr()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(3)))
        .unwrap();
    let served = traffic::check_one_byte(stream).is_ok();
    front.stop().unwrap();
    served
}

#[test]
fn a_clock_a_day_off_is_refused() {
    for (protocol, obfs, offset, fine) in [
        ("auth_sha1_v4", "plain", "+23h", true),
        ("auth_sha1_v4", "plain", "+25h", false),
        ("auth_aes128_fast", "plain", "-25h", false),
        ("auth_chain_a", "plain", "+25h", false),
        ("origin", "tls1.2_ticket_auth", "+25h", false),
        ("origin", "tls1.2_ticket_auth", "+23h", true),
        ("origin", "go_quiet", "+25h", false),
        ("auth_simple", "plain", "+10m", false),
    ] {
        let setup = SsrSetup::new("aes-128-ctr", protocol, obfs);
        let ours = server(&setup, "");
        let served = served_at(&setup, ours.addr(), offset);
        assert_eq!(served, fine, "{protocol} {obfs} {offset}");
        // The next client is served after any input.
        assert!(served_at(&setup, ours.addr(), "+0s"));
        ours.stop().unwrap();
    }
}

/// Returns a frame of `verify_deflate` with these bytes in a stored block (RFC 1951 section 3.2.4).
fn stored(data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap();
    let (mut a, mut b) = (1u32, 0u32);
    for byte in data {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    let mut frame = (len + 2 + 5 + 4).to_be_bytes().to_vec();
    frame.push(1);
    frame.extend(len.to_le_bytes());
    frame.extend((!len).to_le_bytes());
    frame.extend_from_slice(data);
    frame.extend((b << 16 | a).to_be_bytes());
    frame
}

/// Returns 64 KiB of zeros in a frame of 84 bytes: more than a frame may contain.
fn bomb() -> Vec<u8> {
    let mut frame = vec![0, 84, 0xed, 0xc1, 0x01, 0x01, 0, 0, 0, 0x80, 0x90];
    frame.extend([0xfe, 0xaf, 0xee, 0x08, 0x0a]);
    frame.resize(79, 0);
    frame.extend([0x6a, 0x00, 0x0f, 0x00, 0x01]);
    frame
}

/// A frame that expands too much is unauthenticated before the request, and ends the session after it;
/// other sessions continue.
#[test]
fn a_deflate_bomb_hurts_nobody() {
    let origin = OriginServer::start().unwrap();
    let setup = SsrSetup::new("none", "verify_deflate", "plain");
    let ours = server(&setup, "");
    let front = forwarder(&setup.url(ours.addr()), origin.addr());
    let mut good = traffic::connect_directly(front.addr()).unwrap();
    good.write_all(b"ECHO\n").unwrap();
    let mut echo = || {
        good.write_all(b"x").unwrap();
        good.read_exact(&mut [0]).unwrap();
    };
    echo();
    let header = || {
        let mut header = vec![1, 127, 0, 0, 1];
        header.extend(origin.addr().port().to_be_bytes());
        header
    };
    let patience = Duration::from_secs(1);
    for _ in 0..20 {
        let seen = probe_server(
            ours.addr(),
            &bomb(),
            WriteMode::OneWrite,
            AfterWrite::Hold,
            patience / 10,
        );
        assert_eq!(seen.unwrap(), Reaction::Silence);
    }
    let session = [header(), b"ECHO\nx".to_vec()].concat();
    let mut bad: TcpStream = traffic::connect_directly(ours.addr()).unwrap();
    bad.write_all(&stored(&session)).unwrap();
    assert!(matches!(
        watch_reaction(&mut bad, patience).unwrap(),
        Reaction::Answer(_)
    ));
    bad.write_all(&bomb()).unwrap();
    assert_eq!(watch_reaction(&mut bad, patience).unwrap(), Reaction::Reset);
    echo();
    front.stop().unwrap();
    ours.stop().unwrap();
}
