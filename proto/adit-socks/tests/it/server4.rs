//! The SOCKS4 and SOCKS4a server.

use adit_socks::server::{Refusal, Socks4, encode_reply};
use adit_socks::{Command, Reply, Request, Version};
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;
use proptest::prelude::*;

use crate::split::{Outcome, every_split, hex};

fn talk(input: &[u8]) -> Outcome<Request, Refusal> {
    every_split(|| Socks4::new(true), input)
}

fn connect(to: &str, user: Option<&str>) -> Request {
    Request {
        version: Version::V4,
        command: Command::Connect,
        target: to.parse().unwrap(),
        user: user.map(|u| u.as_bytes().to_vec()),
        verified: false,
    }
}

const REJECTED: &str = "005b000000000000";

#[test]
fn what_curl_sends() {
    for (input, want) in [
        (
            "04 01 0051 01020304 75696400",
            connect("1.2.3.4:81", Some("uid")),
        ),
        (
            "0401005000000001006578616d706c652e7465737400",
            connect("example.test:80", None),
        ),
    ] {
        let (step, sent, left) = talk(&hex(input)).unwrap();
        assert_eq!(
            (step, sent, left),
            (HandshakeProgress::Done(want), vec![], vec![])
        );
    }
    assert_eq!(
        encode_reply(Version::V4, Reply::Succeeded, None),
        hex("005a000000000000")
    );
}

#[test]
fn bind_and_literals_in_names() {
    let (step, ..) = talk(&hex("04 02 0000 01020304 00")).unwrap();
    let want = Request {
        command: Command::Bind,
        ..connect("1.2.3.4:0", None)
    };
    assert_eq!(step, HandshakeProgress::Done(want));
    let (step, ..) = talk(&hex("04 01 0050 000000ff 00 3a3a31 00")).unwrap();
    assert_eq!(step, HandshakeProgress::Done(connect("[::1]:80", None)));
}

#[test]
fn rejects_what_is_wrong() {
    let malformed = Refusal::Malformed;
    for (input, why) in [
        ("04 01 0050 00000000 00", malformed("address 0.0.0.0")),
        ("04 01 0000 01020304 00", malformed("port")),
        ("04 01 0050 00000001 00 00", malformed("host name")),
        ("04 01 0050 00000001 00 612062 00", malformed("host name")),
        ("04 01 0050 00000001 00 fe 00", malformed("host name")),
        ("04 03 0050 01020304 00", Refusal::UnknownCommand(3)),
        ("04 f0 0050 01020304 00", Refusal::UnknownCommand(0xf0)),
    ] {
        assert_eq!(talk(&hex(input)), Err((why, hex(REJECTED))), "{input}");
    }
    assert_eq!(talk(&[5]), Err((malformed("SOCKS version"), vec![])));
}

#[test]
fn is_rejected_as_a_whole_where_a_password_is_demanded() {
    let input = hex("04 01 0051 01020304 75696400");
    let got = every_split(|| Socks4::new(false), &input);
    assert_eq!(got, Err((Refusal::NotAllowed, hex(REJECTED))));
}

#[test]
fn texts_have_at_most_255_bytes() {
    let request = |user: usize, name: usize| {
        let mut input = hex("04 01 0050 00000001");
        input.extend(vec![b'u'; user]);
        input.push(0);
        input.extend(vec![b'n'; name]);
        input.push(0);
        input
    };
    assert!(matches!(
        talk(&request(255, 255)),
        Ok((HandshakeProgress::Done(_), ..))
    ));
    for (user, name, what) in [(256, 1, "USERID"), (1, 256, "NAME")] {
        let want = Err((Refusal::TooLong(what), hex(REJECTED)));
        assert_eq!(talk(&request(user, name)), want);
    }
    // A field without a NUL is refused as soon as it is too long.
    let endless = [hex("04 01 0050 01020304"), vec![b'u'; 256]].concat();
    assert!(matches!(talk(&endless), Err((Refusal::TooLong(_), _))));
    assert!(matches!(
        talk(&endless[..endless.len() - 1]),
        Ok((HandshakeProgress::NeedMore { total: 264 }, ..))
    ));
}

#[test]
fn early_data_is_left_alone() {
    let early = vec![0x16; 16 << 10];
    let input = [hex("04 01 0051 01020304 75696400"), early.clone()].concat();
    for pieces in [&[input.len()][..], &[1], &[7, 600]] {
        let (step, _, left) = run_handshake(&mut Socks4::new(true), &input, pieces).unwrap();
        assert!(matches!(step, HandshakeProgress::Done(_)) && left == early);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_handled(
        start in proptest::sample::select(vec!["", "04", "0401005000000001", "040100500102030475"]),
        noise in proptest::collection::vec(any::<u8>(), 0..48),
    ) {
        let input = [hex(start), noise].concat();
        if let Ok((HandshakeProgress::NeedMore { total }, ..)) = talk(&input) {
            prop_assert!(total <= 520);
        }
    }
}
