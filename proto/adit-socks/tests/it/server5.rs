//! The SOCKS5 server.

use adit_socks::server::{Credentials, Refusal, Socks5, encode_reply};
use adit_socks::{Command, Reply, Request, Version};
use adit_wire::codec_laws::run_handshake;
use adit_wire::{HandshakeProgress, ProtocolError};
use proptest::prelude::*;

use crate::split::{Outcome, every_split, hex};

pub(crate) struct Open;
pub(crate) struct User;

impl Credentials for Open {
    fn is_required(&self) -> bool {
        false
    }
    fn check_password(&self, _: &[u8], _: &[u8]) -> bool {
        panic!("an open listener checks no password")
    }
}

impl Credentials for User {
    fn is_required(&self) -> bool {
        true
    }
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        (user, password) == (b"user", b"pw")
    }
}

fn talk(credentials: &dyn Credentials, input: &str) -> Outcome<Request, Refusal> {
    every_split(|| Socks5::new(credentials), &hex(input))
}

fn connect(to: &str) -> Request {
    Request {
        version: Version::V5,
        command: Command::Connect,
        target: to.parse().unwrap(),
        user: None,
        verified: false,
    }
}

fn user(to: &str, verified: bool) -> Request {
    Request {
        user: Some(b"user".to_vec()),
        verified,
        ..connect(to)
    }
}

const LOGIN: &str = "01 04 75736572 02 7077";
const TO_NAME: &str = "05 01 00 03 0c 6578616d706c652e74657374 0050";

#[test]
fn what_curl_sends_without_a_user() {
    for (request, to) in [
        ("05 01 00 01 7f000001 0009", "127.0.0.1:9"),
        (TO_NAME, "example.test:80"),
        (
            "05 01 00 04 00000000000000000000000000000001 0051",
            "[::1]:81",
        ),
    ] {
        let (step, sent, left) = talk(&Open, &format!("05020001 {request}")).unwrap();
        assert_eq!(
            (step, sent, left),
            (HandshakeProgress::Done(connect(to)), hex("0500"), vec![])
        );
    }
    // The refusal of a closed port, byte for byte.
    let (_, mut sent, _) = talk(&Open, "050100 050100017f0000010009").unwrap();
    sent.extend(encode_reply(Version::V5, Reply::ConnectionRefused, None));
    assert_eq!(sent, hex("0500 05050001000000000000"));
}

#[test]
fn what_curl_sends_with_a_user() {
    let input = format!("0503000102 {LOGIN} {TO_NAME}");
    let (step, sent, _) = talk(&User, &input).unwrap();
    assert_eq!(step, HandshakeProgress::Done(user("example.test:80", true)));
    assert_eq!(sent, hex("0502 0100"));
    // An open listener chooses 00 and curl continues without its password.
    let (step, sent, _) = talk(&Open, &format!("0503000102 {TO_NAME}")).unwrap();
    assert_eq!(
        (step, sent),
        (
            HandshakeProgress::Done(connect("example.test:80")),
            hex("0500")
        )
    );
}

#[test]
fn what_firefox_sends() {
    let (step, ..) = talk(&Open, &format!("050100 {TO_NAME}")).unwrap();
    assert_eq!(step, HandshakeProgress::Done(connect("example.test:80")));
    // With a stored name it offers only the password method, even to a listener without users.
    let (step, sent, _) = talk(&Open, &format!("050102 {LOGIN} {TO_NAME}")).unwrap();
    assert_eq!(
        step,
        HandshakeProgress::Done(user("example.test:80", false))
    );
    assert_eq!(sent, hex("0502 0100"));
}

#[test]
fn refuses_methods_and_passwords() {
    for offer in ["05020001", "050100", "0500", "050101", "0501ff"] {
        assert_eq!(
            talk(&User, offer),
            Err((Refusal::NoMethod, hex("05ff"))),
            "{offer}"
        );
    }
    assert_eq!(talk(&Open, "0500"), Err((Refusal::NoMethod, hex("05ff"))));
    for (login, name) in [
        ("01 04 75736572 02 7078", "user"),
        ("01 04 75736572 00", "user"),
        ("01 00 02 7077", ""),
        ("01 00 00", ""),
        ("01 02 1b0a 00", "\\x1b\\n"),
    ] {
        let user = name.into();
        assert_eq!(
            talk(&User, &format!("0503000102 {login} {TO_NAME}")),
            Err((Refusal::BadCredentials { user }, hex("0502 0101"))),
            "{login}"
        );
    }
    assert_eq!(
        talk(&User, "050102 05 04"),
        Err((Refusal::Malformed("version of the login"), hex("0502 0101")))
    );
}

/// Where a login is required, only a correct one leads to a request.
#[test]
fn nobody_passes_a_required_login() {
    let new = || Socks5::new(&User);
    let refused = every_split(new, &hex(&format!("050100 {TO_NAME}"))).unwrap_err();
    assert_eq!(refused, (Refusal::NoMethod, hex("05ff")));
    let wrong = format!("050102 01 04 75736572 00 {TO_NAME}");
    let (why, sent) = every_split(new, &hex(&wrong)).unwrap_err();
    assert_eq!(sent, hex("0502 0101"), "the answer is a failure");
    assert!(matches!(why, Refusal::BadCredentials { .. }), "{why:?}");
    let (step, ..) = every_split(new, &hex(&format!("05020002 {LOGIN} {TO_NAME}"))).unwrap();
    assert_eq!(step, HandshakeProgress::Done(user("example.test:80", true)));
}

#[test]
fn refuses_requests_with_the_right_code() {
    let malformed = Refusal::Malformed;
    for (request, refusal, code) in [
        (
            "05 f0 00 01 01020304 0050",
            Refusal::UnknownCommand(0xf0),
            7,
        ),
        ("05 00 00 01 01020304 0050", Refusal::UnknownCommand(0), 7),
        ("05 01 00 02", Refusal::AddressType(2), 8),
        ("05 01 00 00", Refusal::AddressType(0), 8),
        ("05 01 00 03 00", malformed("host name"), 1),
        ("05 01 00 03 03 612062 0050", malformed("host name"), 1),
        ("05 01 00 03 02 6100 0050", malformed("host name"), 1),
        ("05 01 00 03 02 617f 0050", malformed("host name"), 1),
        ("05 01 00 01 01020304 0000", malformed("port"), 1),
        ("04 01 00 01 01020304 0050", malformed("SOCKS version"), 1),
    ] {
        let sent = format!("0500 05{code:02x}0001000000000000");
        assert_eq!(
            talk(&Open, &format!("050100 {request}")),
            Err((refusal, hex(&sent))),
            "{request}"
        );
    }
    assert_eq!(talk(&Open, "04"), Err((malformed("SOCKS version"), vec![])));
}

#[test]
fn is_liberal_where_clients_differ() {
    // RSV is ignored; an IP literal in a name is an address; names may begin with `_`.
    for (request, to) in [
        ("05 01 ff 01 01020304 0050", "1.2.3.4:80"),
        ("05 01 00 03 07 312e322e332e34 0050", "1.2.3.4:80"),
        ("05 01 00 03 05 5b3a3a315d 0050", "[::1]:80"),
        ("05 01 00 03 03 3a3a31 0050", "[::1]:80"),
        ("05 01 00 03 02 5f61 0050", "_a:80"),
        ("05 01 00 03 03 c3bc62 0050", "üb:80"),
        (
            "05 01 00 04 00000000000000000000ffff7f000001 0050",
            "127.0.0.1:80",
        ),
    ] {
        let (step, ..) = talk(&Open, &format!("050100 {request}")).unwrap();
        assert_eq!(step, HandshakeProgress::Done(connect(to)), "{request}");
    }
    // Port 0 has a meaning in the other commands.
    for (byte, command) in [(2, Command::Bind), (3, Command::UdpAssociate)] {
        let request = format!("050100 05{byte:02x}0001000000000000");
        let (step, ..) = talk(&Open, &request).unwrap();
        let want = Request {
            command,
            ..connect("0.0.0.0:0")
        };
        assert_eq!(step, HandshakeProgress::Done(want));
    }
}

#[test]
fn the_longest_messages() {
    // 255 methods, most of them unknown and some duplicate; the acceptable one is last.
    let mut input = vec![5, 255];
    input.extend([1; 254]);
    input.push(2);
    let (name, password) = ([b'u'; 255], [b'p'; 255]);
    input.extend([&[1, 255][..], &name, &[255], &password].concat());
    input.extend([5, 1, 0, 3, 255]);
    input.extend([b'x'; 255]);
    input.extend([1, 187]);

    struct Long;
    impl Credentials for Long {
        fn is_required(&self) -> bool {
            true
        }
        fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
            (user, password) == (&[b'u'; 255][..], &[b'p'; 255][..])
        }
    }
    let (step, sent, _) = every_split(|| Socks5::new(&Long), &input).unwrap();
    let HandshakeProgress::Done(request) = step else {
        panic!("complete")
    };
    assert!(request.verified);
    assert_eq!(
        request.target,
        format!("{}:443", "x".repeat(255)).parse().unwrap()
    );
    assert_eq!(sent, hex("0502 0100"));
}

#[test]
fn early_data_is_left_alone() {
    for len in [0, 1, 16 << 10] {
        let early: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let mut input = hex(&format!("0503000102 {LOGIN} {TO_NAME}"));
        input.extend(&early);
        for pieces in [&[input.len()][..], &[1], &[7, 600]] {
            let (step, _, left) = run_handshake(&mut Socks5::new(&User), &input, pieces).unwrap();
            assert!(matches!(step, HandshakeProgress::Done(_)));
            assert!(left == early, "{len} {pieces:?}");
        }
    }
}

#[test]
fn the_password_is_wiped_from_the_buffer() {
    let mut wire = hex(&format!("050102 {LOGIN}"));
    let mut core = Socks5::new(&User);
    let mut rx = adit_wire::HandshakeInput::new(&mut wire);
    adit_wire::Handshake::step(
        &mut core,
        &mut rx,
        &mut adit_wire::HandshakeOutput::new(&mut vec![]),
    )
    .unwrap();
    assert_eq!(wire[3..], [0; 9]);
    assert!(!format!("{core:?}").contains("user"));
}

#[test]
fn refusals_become_broken() {
    for (why, broken) in [
        (Refusal::NoMethod, ProtocolError::Unauthentic),
        (
            Refusal::AddressType(9),
            ProtocolError::Malformed("SOCKS address type"),
        ),
        (Refusal::Malformed("port"), ProtocolError::Malformed("port")),
    ] {
        assert_eq!(ProtocolError::from(why), broken);
    }
}

proptest! {
    /// Random bytes after a plausible start: no panic, no endless loop, the same result in every
    /// split, and never a wait for more than the longest message.
    #[test]
    fn any_bytes_are_handled(
        start in proptest::sample::select(vec!["", "05", "050100", "050100050100", "050102", "0501020104"]),
        noise in proptest::collection::vec(any::<u8>(), 0..48),
    ) {
        let input = [hex(start), noise].concat();
        for credentials in [&Open as &dyn Credentials, &User] {
            if let Ok((HandshakeProgress::NeedMore { total }, ..)) = every_split(|| Socks5::new(credentials), &input) {
                prop_assert!(total <= 513);
            }
        }
    }
}
