//! A recorded request that is sent again, to the same server and after a restart.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use adit_interop::hostile_clients::{AfterWrite, Reaction, WriteMode, probe_server};
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{AES_128, BLAKE3_AES_128, CHACHA20, MethodKey, ShadowsocksPeer};
use adit_interop::{AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, traffic};

#[cfg(target_os = "linux")]
use crate::associations::{Session, chain, client, whoami};
use crate::setup::{ALLOW, bin, start};

/// Starts a server that stores its salts in this file, if there is one.
pub(crate) fn serve(method: MethodKey, state: Option<&str>) -> AditProcess {
    let state = state.map_or_else(String::new, |path| format!("&state=@{path}"));
    let anywhere = "127.0.0.1:0".parse().unwrap();
    start(&["run", &format!("{}?{ALLOW}{state}", method.url(anywhere))])
}

/// Returns the first flight of a peer's client to this server.
fn record(method: MethodKey, server: SocketAddr, origin: &OriginServer) -> Vec<u8> {
    let tap = RecordingRelay::start(server).unwrap();
    let theirs = ShadowsocksPeer::SingBox
        .start_forwarder(method, tap.addr(), origin.addr())
        .unwrap();
    traffic::check_one_byte(traffic::connect_directly(theirs.addr()).unwrap()).unwrap();
    tap.requests().into_iter().next().unwrap()
}

/// Returns true if the server accepts the bytes as a request, which is another connection at the origin.
pub(crate) fn accepts(server: SocketAddr, bytes: &[u8], origin: &OriginServer) -> bool {
    let before = origin.connection_count();
    let (mode, ending) = (WriteMode::OneWrite, AfterWrite::Hold);
    let seen = probe_server(server, bytes, mode, ending, Duration::from_secs(2)).unwrap();
    let reached = origin.connection_count() > before;
    assert_eq!(seen != Reaction::Silence, reached, "{seen:?}");
    reached
}

#[test]
fn a_kept_filter_refuses_what_was_seen_before_a_restart() {
    for method in [AES_128, CHACHA20] {
        let (origin, folder) = (
            OriginServer::start().unwrap(),
            TempFolder::new("salts").unwrap(),
        );
        let path = folder.path().join("salts");
        let path = path.to_str().unwrap();
        let back = serve(method, Some(path));
        let seen = record(method, back.addr(), &origin);
        assert!(!accepts(back.addr(), &seen, &origin), "at once");
        back.stop().unwrap();
        for restart in 1..=2 {
            let mut back = serve(method, Some(path));
            assert!(
                !accepts(back.addr(), &seen, &origin),
                "after restart {restart}"
            );
            let log = back.process().output();
            assert!(log.contains("salts of earlier connections"), "{log}");
            // A new request still works.
            let fresh = record(method, back.addr(), &origin);
            assert_ne!(fresh, seen);
            back.stop().unwrap();
        }
    }
}

/// The purpose of `state`: the AEAD edition has no time stamps, so a new filter knows no old requests.
#[test]
fn without_it_a_restart_forgets() {
    let origin = OriginServer::start().unwrap();
    let back = serve(AES_128, None);
    let seen = record(AES_128, back.addr(), &origin);
    assert!(!accepts(back.addr(), &seen, &origin));
    back.stop().unwrap();
    let back = serve(AES_128, None);
    assert!(
        accepts(back.addr(), &seen, &origin),
        "once after each start"
    );
    assert!(!accepts(back.addr(), &seen, &origin));
    back.stop().unwrap();
}

/// The 2022 edition needs no file: a request contains its time.
#[test]
fn a_request_from_before_the_start_is_refused() {
    let origin = OriginServer::start().unwrap();
    let back = serve(BLAKE3_AES_128, None);
    let seen = record(BLAKE3_AES_128, back.addr(), &origin);
    back.stop().unwrap();
    // Immediately: the request may have the second of the start as its time.
    let back = serve(BLAKE3_AES_128, None);
    assert!(!accepts(back.addr(), &seen, &origin));
    // A current client is served.
    let fresh = record(BLAKE3_AES_128, back.addr(), &origin);
    assert_ne!(fresh, seen);
    back.stop().unwrap();
}

/// Returns true if these bytes are answered.
#[cfg(target_os = "linux")]
fn is_answered(server: SocketAddr, packet: &[u8]) -> bool {
    is_answered_on(&client(server), packet)
}

/// Returns true if these bytes are answered on the socket of a client.
#[cfg(target_os = "linux")]
pub(crate) fn is_answered_on(socket: &UdpSocket, packet: &[u8]) -> bool {
    let soon = Some(Duration::from_millis(400));
    socket.set_read_timeout(soon).unwrap();
    socket.send(packet).unwrap();
    socket.recv(&mut [0; 2048]).is_ok()
}

#[cfg(target_os = "linux")]
#[test]
fn a_packet_from_before_the_start_is_refused() {
    let keys = chain(BLAKE3_AES_128, &[BLAKE3_AES_128.key]);
    let (target, mut session) = (whoami(), Session::new(&keys));
    let back = serve(BLAKE3_AES_128, None);
    let packets: Vec<_> = (0..4).map(|_| session.seal(b"?", target)).collect();
    assert!(
        packets
            .iter()
            .all(|packet| is_answered(back.addr(), packet))
    );
    back.stop().unwrap();
    let back = serve(BLAKE3_AES_128, None);
    for packet in &packets {
        assert!(
            !is_answered(back.addr(), packet),
            "a packet to the server before"
        );
    }
    let fresh = session.seal(b"?", target);
    assert!(is_answered(back.addr(), &fresh), "the client goes on");
    back.stop().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn listeners_with_one_key_share_what_they_have_seen() {
    for method in [BLAKE3_AES_128, AES_128] {
        let origin = OriginServer::start().unwrap();
        let url = format!("{}?{ALLOW}", method.url("127.0.0.1:0".parse().unwrap()));
        let back = AditProcess::start_with(&bin(), &["run", "-L", &url, "-L", &url], 2).unwrap();
        let (one, two) = (back.addrs()[0], back.addrs()[1]);
        let request = record(method, one, &origin);
        assert!(
            !accepts(two, &request, &origin),
            "{}: a request",
            method.name
        );
        let (target, mut session) = (whoami(), Session::new(&chain(method, &[method.key])));
        let packet = session.seal(b"?", target);
        assert!(is_answered(one, &packet));
        assert!(!is_answered(two, &packet), "{}: a packet", method.name);
        back.stop().unwrap();
    }
}

/// The file does not reveal who used the server, and only its owner can read it.
#[test]
fn the_file_is_private_and_a_broken_one_is_moved_aside() {
    let (origin, folder) = (
        OriginServer::start().unwrap(),
        TempFolder::new("salts").unwrap(),
    );
    let path = folder.path().join("salts");
    let back = serve(AES_128, path.to_str());
    let seen = record(AES_128, back.addr(), &origin);
    back.stop().unwrap();
    let kept = fs::read(&path).unwrap();
    assert!(
        !kept.windows(16).any(|part| part == &seen[..16]),
        "the salt as it was"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    fs::write(&path, &kept[..kept.len() - 1]).unwrap();
    let mut back = serve(AES_128, path.to_str());
    let process: &mut ChildProcess = back.process();
    process.wait_lines("moved aside", 1, TEST_TIMEOUT).unwrap();
    assert!(path.with_extension("broken").exists());
    record(AES_128, back.addr(), &origin);
    back.stop().unwrap();
    assert!(
        fs::read(&path).unwrap().len() >= kept.len(),
        "a new one in its place"
    );
}
