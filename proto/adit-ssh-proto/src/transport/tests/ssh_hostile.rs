//! Unauthenticated peers that violate the protocol.

use super::super::Event;
use super::{End, Link, clear, pair, settings};
use crate::algorithm::{Kex, Mac};
use crate::kex::tests::{TestRng, preferred};
use crate::kex::{ClientKex, write_kexinit};
use crate::packet::MAX_PACKET_LENGTH;
use crate::wire::SshBufMut;
use crate::{SshError, msg};

/// Returns a server and a client that have exchanged their lists, and will use `kex`.
fn lists(kex: Kex) -> Link {
    let mut config = settings();
    config.preferred.kex = vec![kex];
    let mut link = Link::new(config.clone(), config);
    let up = link.client.said();
    link.server.hear(&up).unwrap();
    let down = link.server.said();
    link.client.hear(&down).unwrap();
    link
}

/// Passes `value` to a server in place of the client's public value.
fn to_server(kex: Kex, value: &[u8]) -> Result<(), SshError> {
    let mut payload = vec![msg::KEX_INIT];
    payload.put_string(value);
    lists(kex).server.hear(&clear(&payload))
}

/// Passes `value` to a client in place of the server's public value.
fn to_client(kex: Kex, value: &[u8]) -> Result<(), SshError> {
    let mut payload = vec![msg::KEX_REPLY];
    payload.put_string(b"no key");
    payload.put_string(value);
    payload.put_string(b"no signature");
    lists(kex).client.hear(&clear(&payload))
}

const INVALID: SshError = SshError::Kex("the peer's public value is not valid");

/// X25519 points whose product with any key is zero (RFC 7748 section 6.1).
fn points_of_small_order() -> Vec<[u8; 32]> {
    let almost = |last: u8| {
        let mut point = [0xff; 32];
        (point[0], point[31]) = (last, 0x7f);
        point
    };
    let mut one = [0; 32];
    one[0] = 1;
    let hex = |text: &str| {
        let mut point = [0; 32];
        for (i, byte) in point.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
        }
        point
    };
    vec![
        [0; 32],
        one,
        // p - 1, p, p + 1.
        almost(0xec),
        almost(0xed),
        almost(0xee),
        hex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        hex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    ]
}

#[test]
fn kex_zero() {
    for point in points_of_small_order() {
        for kex in [Kex::Curve25519, Kex::Curve25519LibSsh] {
            assert_eq!(to_server(kex, &point), Err(INVALID));
            assert_eq!(to_client(kex, &point), Err(INVALID));
        }
        for kex in [Kex::MlKem768X25519, Kex::Sntrup761X25519] {
            let mut ours = Vec::new();
            ClientKex::start(kex, &mut TestRng(4), &mut ours).unwrap();
            // A genuine post-quantum value with this point.
            let lattice = &ours[5..ours.len() - 32];
            let value = [lattice, &point].concat();
            assert_eq!(to_server(kex, &value), Err(INVALID), "{kex}");
            let len = if kex == Kex::MlKem768X25519 {
                1088
            } else {
                1039
            };
            let value = [&vec![1; len][..], &point].concat();
            assert_eq!(to_client(kex, &value), Err(INVALID), "{kex}");
        }
    }
}

#[test]
fn key_len() {
    let lens = [0, 1, 4, 31, 33, 64, 66, 1119, 1121, 1215, 1217, 200_000];
    for kex in Kex::ALL {
        if kex.name().starts_with("diffie-hellman") {
            continue;
        }
        for len in lens {
            let value = vec![4; len];
            for broken in [to_server(*kex, &value), to_client(*kex, &value)] {
                assert!(
                    matches!(broken, Err(SshError::Kex(_))),
                    "{kex} {len} {broken:?}"
                );
            }
        }
    }
    // Numbers: none, one, too large, and negative.
    let number = |value: &[u8]| {
        let mut payload = vec![msg::KEX_INIT];
        payload.put_string(value);
        lists(Kex::Group14).server.hear(&clear(&payload))
    };
    for bad in [&[][..], &[1], &[0x80], &[0x7f; 257], &[0x7f; 200_000]] {
        assert!(number(bad).is_err(), "{}", bad.len());
    }
}

/// Lengths that exceed the data or the limit: nothing is allocated for them.
#[test]
fn ssh_len() {
    let mut link = Link::new(settings(), settings());
    let up = link.client.said();
    link.server.hear(&up).unwrap();
    let too_long = u32::try_from(MAX_PACKET_LENGTH + 1).unwrap();
    let broken = link.server.hear(&too_long.to_be_bytes());
    assert!(matches!(broken, Err(SshError::TooMuch { .. })));
    for payload in [
        [&[msg::KEXINIT; 17][..], &[0xff; 4]].concat(),
        [&[msg::KEXINIT; 17][..], &[0xff, 0xff, 0, 0], &[b'a'; 1000]].concat(),
        vec![msg::KEXINIT],
        vec![msg::DEBUG, 0, 0xff, 0xff, 0xff, 0xff],
    ] {
        let mut server = End::server(settings());
        server.hear(b"SSH-2.0-x\r\n").unwrap();
        let broken = server.hear(&clear(&payload));
        assert!(matches!(broken, Err(SshError::Malformed(_))), "{broken:?}");
    }
}

/// Lists of a hundred thousand names, of one endless name, and of empty names.
#[test]
fn lists_out_of_bounds() {
    let refused = |list: &str| {
        let mut payload = vec![msg::KEXINIT];
        payload.put_raw(&[0; 16]);
        payload.put_string(list.as_bytes());
        for _ in 0..9 {
            payload.put_string(b"none");
        }
        payload.put_bool(false);
        payload.put_u32(0);
        let mut server = End::server(settings());
        server.hear(b"SSH-2.0-x\r\n").unwrap();
        server.hear(&clear(&payload)).unwrap_err()
    };
    for list in [
        "x,".repeat(100_000) + "x",
        "x".repeat(65),
        "x".repeat(250_000),
        "curve25519-sha256,,none".to_owned(),
        ",".to_owned(),
        "a b".to_owned(),
        "\u{e4}".to_owned(),
    ] {
        assert_eq!(refused(&list), SshError::Malformed("KEXINIT"));
    }
    let long = "x,".repeat(32_000) + "x";
    let SshError::NoCommon { what, theirs, .. } = refused(&long) else {
        panic!("a long list is a list");
    };
    assert_eq!((what, theirs.len()), ("method of key exchange", 1024));
}

/// Both sides' errors contain the offers of both sides.
#[test]
fn nothing_in_common_is_told_to_both() {
    let (mut client, mut server) = (settings(), settings());
    for config in [&mut client, &mut server] {
        config.preferred.cipher = vec![crate::algorithm::Cipher::Aes128Ctr];
    }
    client.preferred.mac = vec![Mac::Umac64Etm, Mac::Umac128];
    server.preferred.mac = vec![Mac::HmacSha512];
    let mut link = Link::new(client, server);
    let up = link.client.said();
    let told = link.server.hear(&up).unwrap_err().to_string();
    let expected = "no common MAC (client to server): we offer hmac-sha2-512; \
                    the peer offers umac-64-etm@openssh.com,umac-128@openssh.com";
    assert_eq!(told, expected);
    // The client detects it on its own, from the server's lists; otherwise, DISCONNECT would tell
    // it.
    let down = link.server.said();
    let told = link.client.hear(&down).unwrap_err().to_string();
    let expected = "no common MAC (client to server): we offer \
                    umac-64-etm@openssh.com,umac-128@openssh.com; the peer offers hmac-sha2-512";
    assert_eq!(told, expected);
}

/// Answers without a request.
#[test]
fn reply_unsolicited() {
    for number in [
        msg::NEWKEYS,
        msg::KEX_INIT,
        msg::KEX_REPLY,
        msg::KEX_GEX_REPLY,
        49,
    ] {
        let mut link = pair(settings(), settings());
        link.server.transport.send(&[number]).unwrap();
        assert_eq!(link.settle(), Err(SshError::Unexpected(number)));
    }
    // Before the keys, and from the side that has nothing to answer.
    for number in [
        msg::SERVICE_ACCEPT,
        msg::EXT_INFO,
        msg::PING,
        msg::PONG,
        52,
        94,
        128,
    ] {
        let mut link = lists(Kex::Curve25519);
        let broken = link.server.hear(&clear(&[number]));
        assert_eq!(broken, Err(SshError::Unexpected(number)));
    }
    let mut link = lists(Kex::Curve25519);
    let mut reply = vec![msg::KEX_REPLY];
    (0..3).for_each(|_| reply.put_string(&[9; 32]));
    assert_eq!(
        link.server.hear(&clear(&reply)),
        Err(SshError::Unexpected(31))
    );
    let mut link = lists(Kex::Curve25519);
    assert_eq!(
        link.client.hear(&clear(&[21])),
        Err(SshError::Unexpected(21))
    );
    // A second KEXINIT.
    let mut link = lists(Kex::Curve25519);
    let mut again = Vec::new();
    write_kexinit(&preferred(), &[], [0; 16], &mut again);
    assert_eq!(
        link.client.hear(&clear(&again)),
        Err(SshError::Unexpected(20))
    );
    // A pong without a ping only informs, and events that are not polled are not kept forever.
    let mut link = pair(settings(), settings());
    link.client.hear(&[]).unwrap();
    for _ in 0..1000 {
        let mut pong = vec![msg::PONG];
        pong.put_string(&[1; 2000]);
        link.client.transport.send(&pong).unwrap();
    }
    let mut up = link.client.said();
    let mut at = 0;
    while at < up.len() {
        match link.server.transport.open_next(&mut up[at..]).unwrap() {
            super::super::OpenStep::Consumed { consumed } => at += consumed,
            other => panic!("{other:?}"),
        }
    }
    let mut kept = 0;
    while let Some(Event::Pong(data)) = link.server.transport.poll_event() {
        assert_eq!(data.len(), 1024);
        kept += 1;
    }
    assert_eq!(kept, 64);
}

fn ping(len: usize) -> Vec<u8> {
    let mut payload = vec![msg::PING];
    payload.put_string(&vec![7; len]);
    payload
}

/// CVE-2025-26466: pings to be answered before authentication, or while the peer does not read.
#[test]
fn ping_flood() {
    let mut link = pair(settings(), settings());
    for _ in 0..33 {
        link.client.transport.send(&ping(100)).unwrap();
    }
    let broken = link.settle();
    assert!(
        matches!(broken, Err(SshError::TooMuch { limit: 32, .. })),
        "{broken:?}"
    );

    let mut config = settings();
    config.max_unsent = 100_000;
    let mut link = pair(settings(), config);
    link.server
        .transport
        .send(&[msg::USERAUTH_SUCCESS])
        .unwrap();
    link.settle().unwrap();
    // The answers are read: any number is allowed.
    for _ in 0..200 {
        link.client.transport.send(&ping(1000)).unwrap();
        link.settle().unwrap();
    }
    // The answers are not read.
    let mut broken = Ok(());
    for n in 0..200 {
        link.client.transport.send(&ping(1000)).unwrap();
        let up = link.client.said();
        broken = link.server.hear(&up);
        if broken.is_err() {
            assert!((90..110).contains(&n), "{n}");
            break;
        }
    }
    assert!(matches!(
        broken,
        Err(SshError::TooMuch { limit: 100_000, .. })
    ));
    // The same while a key exchange is kept open: the answers would be queued.
    let mut config = settings();
    config.max_queue = 50_000;
    let mut link = pair(settings(), config);
    link.server
        .transport
        .send(&[msg::USERAUTH_SUCCESS])
        .unwrap();
    link.settle().unwrap();
    link.server.transport.rekey().unwrap();
    let broken = (0..200).find_map(|_| {
        link.client.transport.send(&ping(1000)).unwrap();
        let up = link.client.said();
        link.server.hear(&up).err()
    });
    assert!(matches!(
        broken,
        Some(SshError::TooMuch { limit: 50_000, .. })
    ));
}

/// Endless text before the keys, from a peer without strict key exchange.
#[test]
fn words_before_the_keys_are_counted() {
    let mut server = End::server(settings());
    server.hear(b"SSH-2.0-x\r\n").unwrap();
    let ignore = clear(&[msg::IGNORE, 0, 0, 0, 0]);
    let broken = (0..300).find_map(|n| server.hear(&ignore).err().map(|why| (n, why)));
    assert!(
        matches!(broken, Some((256, SshError::TooMuch { .. }))),
        "{broken:?}"
    );
}
