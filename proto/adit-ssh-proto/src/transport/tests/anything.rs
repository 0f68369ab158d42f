//! Messages that may arrive at any time, guesses, and arbitrary bytes.

use super::{End, Link, clear, data, pair, settings};
use crate::algorithm::Kex;
use crate::kex::tests::TestRng;
use crate::kex::{ClientKex, KexInit, STRICT_CLIENT, write_kexinit};
use crate::packet::Opened;
use crate::wire::SshBufMut;
use crate::{SshError, msg};
use proptest::prelude::*;

/// A client that guesses the method: a wrong guess is ignored once; a right one is used.
#[test]
fn guesses_are_handled() {
    let init = |kex| {
        let mut payload = Vec::new();
        ClientKex::start(kex, &mut TestRng(4), &mut payload).unwrap();
        clear(&payload)
    };
    let right = init(Kex::Curve25519);
    let wrong = init(Kex::EcdhP521);
    let run = |first: Kex, follows: bool, packets: &[&[u8]]| {
        let mut names = settings().preferred;
        names.kex = vec![first, Kex::Curve25519];
        let mut lists = Vec::new();
        write_kexinit(&names, &[STRICT_CLIENT], [1; 16], &mut lists);
        let at = lists.len() - 5;
        lists[at] = u8::from(follows);
        assert_eq!(
            KexInit::parse(&lists).unwrap().first_kex_packet_follows,
            follows
        );
        let mut server = End::server(settings());
        server.hear(b"SSH-2.0-guesser\r\n").unwrap();
        server.hear(&clear(&lists)).unwrap();
        server.said();
        for packet in packets {
            server.hear(packet)?;
        }
        // Its answer, if there is one: the reply and NEWKEYS.
        Ok::<_, SshError>(server.transport.is_writable())
    };
    assert_eq!(run(Kex::Curve25519, true, &[&right]), Ok(true));
    assert_eq!(run(Kex::EcdhP521, true, &[&wrong]), Ok(false));
    assert_eq!(run(Kex::EcdhP521, true, &[&wrong, &right]), Ok(true));
    assert!(run(Kex::EcdhP521, true, &[&wrong, &wrong]).is_err());
    assert!(run(Kex::EcdhP521, false, &[&wrong]).is_err());
    assert!(run(Kex::Curve25519, true, &[&right, &right]).is_err());
}

/// Unknown messages are reported with their number, but not before the keys.
#[test]
fn unknown_messages() {
    let mut link = pair(settings(), settings());
    let heard = link.server.transport.opener.sequence();
    link.client.transport.send(&[150, 1, 2]).unwrap();
    link.client.transport.send(&data(1, 1)).unwrap();
    let up = link.client.said();
    link.server.hear(&up).unwrap();
    let mut expected = Vec::new();
    expected.put_u8(msg::UNIMPLEMENTED);
    expected.put_u32(heard);
    let mut wire = link.server.said();
    let opened = link.client.transport.opener.open(&mut wire).unwrap();
    let Opened::Packet { payload, .. } = opened else {
        panic!("no answer");
    };
    let payload = link.client.transport.opener.payload(&wire, &payload);
    assert_eq!(payload, expected);
    assert_eq!(link.server.payloads, [data(1, 1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One altered byte during a first exchange: a side that completes it nevertheless (the byte
    /// was padding) has received the same as the other.
    #[test]
    fn both_have_heard_the_same(at: u16, flip in 1u8.., down: bool) {
        let mut link = Link::new(settings(), settings());
        let (mut seen, mut at) = (0, usize::from(at % 4000));
        if at > 2200 { at -= 1500; }
        for _ in 0..8 {
            let mut up = link.client.said();
            if !down { alter(&mut up, &mut seen, at, flip); }
            if link.server.hear(&up).is_err() { break; }
            let mut said = link.server.said();
            if down { alter(&mut said, &mut seen, at, flip); }
            if link.client.hear(&said).is_err() { break; }
        }
        let (client, server) = (&link.client.transport, &link.server.transport);
        if link.client.keys() + link.server.keys() == 2 {
            prop_assert_eq!(client.session_id(), server.session_id());
            prop_assert_eq!(client.negotiated(), server.negotiated());
            prop_assert!(client.is_strict() && server.is_strict());
        }
    }

    /// Arbitrary bytes, as a stream and as payloads of packets, to either side.
    #[test]
    fn no_bytes_panic(stream: Vec<u8>, payloads: Vec<Vec<u8>>, server: bool) {
        let fresh = || if server { End::server(settings()) } else { End::client(settings()) };
        let _ = fresh().hear(&stream);
        let mut end = fresh();
        let _ = end.hear(b"SSH-2.0-x\r\n");
        let _ = end.hear(&stream);
        let mut end = fresh();
        let _ = end.hear(b"SSH-2.0-x\r\n");
        for payload in payloads.iter().filter(|payload| !payload.is_empty()) {
            let _ = end.hear(&clear(payload));
        }
    }
}

fn alter(bytes: &mut [u8], seen: &mut usize, at: usize, flip: u8) {
    if let Some(byte) = at.checked_sub(*seen).and_then(|at| bytes.get_mut(at)) {
        *byte ^= flip;
    }
    *seen += bytes.len();
}
