//! From the first line to the last message: versions, withheld lists, extensions, pings, the end.

use core::time::Duration;

use adit_wire::Time;

use super::super::{Event, StrictKex, TransportConfig};
use super::{End, Link, clear, data, pair, settings};
use crate::algorithm::{Cipher, Compression, KeyAlgorithm};
use crate::error::{Disconnect, SshError};
use crate::kex::{EXT_INFO_CLIENT, KexInit, STRICT_CLIENT, write_kexinit};
use crate::msg;
use crate::wire::SshBufMut;

/// Returns the KEXINIT in `said`, after the line.
fn lists(said: &[u8]) -> Vec<u8> {
    let end = said.iter().position(|b| *b == b'\n').unwrap() + 1;
    let packet = &said[end..];
    let padding = usize::from(packet[4]);
    packet[5..packet.len() - padding].to_vec()
}

#[test]
fn a_server_may_talk_first_and_a_client_not() {
    let mut link = Link::new(settings(), settings());
    link.client.hear(b"Welcome!\r\nmind the gap\n").unwrap();
    link.settle().unwrap();
    assert_eq!(link.client.keys(), 1);
    let version = link.server.transport.peer_version().unwrap().to_string();
    assert_eq!(version, concat!("SSH-2.0-adit_", env!("CARGO_PKG_VERSION")));

    let mut server = End::server(settings());
    server.said();
    assert!(server.hear(b"GET / HTTP/1.1\r\n").is_err());
    assert!(server.said().is_empty(), "no DISCONNECT without SSH");
    assert!(server.hear(b"SSH-2.0-x\r\n").is_err(), "it was over");
}

/// A server with ChaCha20 waits for a client's lists, to omit it if necessary.
#[test]
fn chacha_is_left_out_for_clients_without_strict_kex() {
    let mut eager = settings().preferred;
    eager.cipher = vec![Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];
    for (markers, offers) in [(&[STRICT_CLIENT][..], true), (&[EXT_INFO_CLIENT], false)] {
        let mut server = End::server(settings());
        let first = server.said();
        assert!(first.ends_with(b"\r\n"), "only its line");
        server.hear(b"SSH-2.0-x\r\n").unwrap();
        let mut theirs = Vec::new();
        write_kexinit(&eager, markers, [0; 16], &mut theirs);
        server.hear(&clear(&theirs)).unwrap();
        let ours = lists(&[first, server.said()].concat());
        let ours = KexInit::parse(&ours).unwrap();
        for list in ours.cipher {
            assert_eq!(list.contains(Cipher::ChaCha20Poly1305.name()), offers);
            assert!(list.contains(Cipher::Aes256Gcm.name()));
        }
    }
    // A client without any other cipher is refused, on either side.
    let exposed = |strict| {
        let mut config = settings();
        config.preferred.cipher = vec![Cipher::ChaCha20Poly1305];
        config.strict = strict;
        config
    };
    let refused = |client: TransportConfig, server: TransportConfig| {
        Link::new(client, server).settle().unwrap_err()
    };
    let (never, usual) = (exposed(StrictKex::Never), exposed(StrictKex::WhenExposed));
    assert!(matches!(
        refused(never.clone(), usual.clone()),
        SshError::NoCommon { .. }
    ));
    assert!(matches!(refused(usual, never), SshError::Policy(_)));
}

/// A client that waits for the server's lists receives them after a short time, without ChaCha20.
#[test]
fn a_silent_client_gets_the_lists_too() {
    let mut server = End::server(settings());
    let first = server.said();
    let at = |ms: u64| Time(ms * 1000);
    assert_eq!(server.transport.poll_timeout(at(0)), Some(at(120_000)));
    server.hear(b"SSH-2.0-x\r\n").unwrap();
    assert_eq!(server.transport.poll_timeout(at(10)), Some(at(210)));
    server.transport.handle_timeout(at(209)).unwrap();
    assert!(server.said().is_empty());
    server.transport.handle_timeout(at(210)).unwrap();
    let ours = lists(&[first, server.said()].concat());
    let ours = KexInit::parse(&ours).unwrap();
    assert!(!ours.cipher[0].contains(Cipher::ChaCha20Poly1305.name()));
    // The timeout of the exchange starts here.
    assert_eq!(server.transport.poll_timeout(at(300)), Some(at(120_300)));
    assert!(server.transport.handle_timeout(at(120_300)).is_err());
    assert_eq!(server.transport.poll_timeout(at(120_301)), None);
}

#[test]
fn silence_ends_an_exchange() {
    let mut config = settings();
    config.kex_timeout = Duration::from_secs(3);
    let mut client = End::client(config);
    assert_eq!(
        client.transport.poll_timeout(Time(0)),
        Some(Time(3_000_000))
    );
    assert!(client.transport.handle_timeout(Time(2_999_999)).is_ok());
    assert!(client.transport.handle_timeout(Time(3_000_000)).is_err());
}

#[test]
fn extensions_are_told() {
    let mut server = settings();
    server.user_algorithms = vec![KeyAlgorithm::EcdsaP384, KeyAlgorithm::RsaSha256];
    let link = pair(settings(), server.clone());
    let told = link.client.transport.extensions();
    assert_eq!(told.user_algorithms, Some(server.user_algorithms));
    assert!(told.ping && told.hostbound);
    assert!(link.server.transport.extensions().ext_info_in_auth);
    assert!(matches!(link.client.events.last(), Some(Event::ExtInfo(_))));
}

#[test]
fn pings_come_back_in_order() {
    let mut link = pair(settings(), settings());
    assert_eq!(link.client.transport.send_ping(b"first"), Ok(true));
    link.client.transport.send_ping(b"").unwrap();
    // A client has not announced that it answers.
    assert_eq!(link.server.transport.send_ping(b"x"), Ok(false));
    link.settle().unwrap();
    let pongs = link.client.events.iter().filter_map(|event| match event {
        Event::Pong(data) => Some(&data[..]),
        _ => None,
    });
    assert_eq!(pongs.collect::<Vec<_>>(), [&b"first"[..], b""]);
}

#[test]
fn words_for_a_log_are_printable() {
    let mut link = pair(settings(), settings());
    let mut payload = vec![msg::DEBUG, 1];
    payload.put_string(b"look \x1b[31mhere\n");
    payload.put_string(b"en");
    link.client.transport.send(&payload).unwrap();
    link.client.transport.send(&[msg::IGNORE]).unwrap();
    link.settle().unwrap();
    let expected = Event::Debug("look ?[31mhere?".to_owned());
    assert_eq!(link.server.events.last(), Some(&expected));
}

/// `zlib@openssh.com` starts after USERAUTH_SUCCESS, in both directions.
#[test]
fn delayed_compression() {
    let mut config = settings();
    config.preferred.compression = vec![Compression::ZlibDelayed];
    let mut link = pair(config.clone(), config);
    let long = [&[94][..], &[b'a'; 10_000]].concat();
    link.client.transport.send(&long).unwrap();
    assert!(link.client.transport.take_output().len() > 10_000);
    link.settle().unwrap();
    link.server
        .transport
        .send(&[msg::USERAUTH_SUCCESS])
        .unwrap();
    link.settle().unwrap();
    for _ in 0..2 {
        for end in [&mut link.client, &mut link.server] {
            end.transport.send(&long).unwrap();
            assert!(end.transport.take_output().len() < 500);
        }
        link.settle().unwrap();
        link.client.transport.rekey().unwrap();
        link.settle().unwrap();
    }
    assert_eq!(link.server.payloads, [&long[..], &long, &long]);
    assert_eq!(link.client.payloads, [&[52][..], &long, &long]);
}

#[test]
fn the_end_is_told_with_its_words() {
    let mut link = pair(settings(), settings());
    link.server.transport.send(&data(1, 9)).unwrap();
    let end = &mut link.server.transport;
    end.disconnect(Disconnect::ByApplication, "bye\u{7}");
    end.disconnect(Disconnect::ProtocolError, "once more");
    assert!(!end.is_writable());
    let down = link.server.said();
    let ended = SshError::Disconnected {
        reason: 11,
        text: "bye?".to_owned(),
    };
    assert_eq!(link.client.hear(&down), Err(ended.clone()));
    assert_eq!(link.client.payloads, [data(1, 9)]);
    // Every call returns the error again, and the peer gets no answer.
    assert_eq!(link.client.transport.send(&[94]), Err(ended.clone()));
    assert_eq!(link.client.transport.rekey(), Err(ended.clone()));
    assert_eq!(link.client.transport.open_next(&mut []), Err(ended));
    assert!(link.client.said().is_empty());
    assert!(link.server.transport.send(&[94]).is_err());
}

#[test]
fn debug_shows_no_secret() {
    let link = pair(settings(), settings());
    let shown = format!("{:?}", link.client.transport);
    assert!(
        shown.contains("aes128-gcm@openssh.com") || shown.contains("Aes128Gcm"),
        "{shown}"
    );
    assert!(!shown.contains("key: ["), "{shown}");
}
