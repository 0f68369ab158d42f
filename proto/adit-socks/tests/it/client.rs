//! The clients, against recorded answers and against our own server.

use adit_socks::client::{ClientError, Socks4Connect, Socks5Connect, second_reply};
use adit_socks::server::{Socks4, Socks5, encode_reply};
use adit_socks::{Command, Reply, Version};
use adit_wire::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError, Target,
};
use proptest::prelude::*;

use crate::server5::{Open, User};
use crate::split::{every_split, hex};

fn to(text: &str) -> Target {
    text.parse().unwrap()
}

fn auth() -> Option<(String, String)> {
    Some(("user".into(), "pw".into()))
}

fn plain() -> Socks5Connect {
    Socks5Connect::new(Command::Connect, to("example.test:80"), None)
}

fn with_auth() -> Socks5Connect {
    Socks5Connect::new(Command::Connect, to("example.test:80"), auth())
}

const REQUEST: &str = "05 01 00 03 0c 6578616d706c652e74657374 0050";
const OK: &str = "05 00 00 01 c0000201 1f90";

#[test]
fn sends_what_curl_sends() {
    let (step, sent, left) = every_split(plain, &hex(&format!("0500 {OK} cafe"))).unwrap();
    assert_eq!(step, HandshakeProgress::Done(to("192.0.2.1:8080")));
    assert_eq!(sent, hex(&format!("050100 {REQUEST}")));
    assert_eq!(left, hex("cafe"));

    let (step, sent, _) = every_split(with_auth, &hex(&format!("0502 0100 {OK}"))).unwrap();
    assert_eq!(step, HandshakeProgress::Done(to("192.0.2.1:8080")));
    assert_eq!(
        sent,
        hex(&format!("050102 01 04 75736572 02 7077 {REQUEST}"))
    );

    let optional = || with_auth().with_optional_auth();
    let (_, sent, _) = every_split(optional, &hex(&format!("0500 {OK}"))).unwrap();
    assert_eq!(sent, hex(&format!("05020002 {REQUEST}")));
}

#[test]
fn waits_for_each_answer_unless_pipelined() {
    let first_flight = |mut core: Socks5Connect| {
        let mut sent = Vec::new();
        let step = core.step(
            &mut HandshakeInput::new(&mut []),
            &mut HandshakeOutput::new(&mut sent),
        );
        assert_eq!(step, Ok(HandshakeProgress::NeedMore { total: 2 }));
        sent
    };
    assert_eq!(first_flight(plain()), hex("050100"));
    assert_eq!(first_flight(with_auth()), hex("050102"));
    assert_eq!(
        first_flight(plain().with_pipelining()),
        hex(&format!("050100 {REQUEST}"))
    );
    let all = hex(&format!("050102 01 04 75736572 02 7077 {REQUEST}"));
    assert_eq!(first_flight(with_auth().with_pipelining()), all);
    assert_eq!(
        first_flight(with_auth().with_optional_auth().with_pipelining()),
        all
    );
    // Nothing is sent twice.
    let (step, sent, _) = every_split(
        || with_auth().with_pipelining(),
        &hex(&format!("0502 0100 {OK}")),
    )
    .unwrap();
    assert_eq!(
        (step, sent),
        (HandshakeProgress::Done(to("192.0.2.1:8080")), all)
    );
}

#[test]
fn accepts_every_address_type_in_the_reply() {
    for (bound, want) in [
        ("01 00000000 0000", "0.0.0.0:0"),
        (
            "04 20010db8000000000000000000000001 0050",
            "[2001:db8::1]:80",
        ),
        ("03 0c 6578616d706c652e74657374 0050", "example.test:80"),
        // Invalid names: the length is trusted, the name is not.
        ("03 00 0051", "0.0.0.0:81"),
        ("03 02 6100 0051", "0.0.0.0:81"),
    ] {
        let answer = hex(&format!("0500 050000 {bound} 99"));
        let (step, _, left) = every_split(plain, &answer).unwrap();
        assert_eq!(
            (step, left),
            (HandshakeProgress::Done(to(want)), vec![0x99]),
            "{bound}"
        );
    }
    let unknown = every_split(plain, &hex("0500 05000009")).unwrap_err().0;
    assert_eq!(unknown, ClientError::Malformed("address type of the reply"));
}

#[test]
fn keeps_the_code_of_a_refusal_even_if_it_is_cut_short() {
    for code in 1..=0xff {
        let why = every_split(plain, &[5, 0, 5, code]).unwrap_err().0;
        match Reply::from_byte(code) {
            Some(reply) => assert_eq!(why, ClientError::Replied(reply)),
            None => assert_eq!(why, ClientError::UnknownReply(code)),
        }
    }
    assert_eq!(
        ProtocolError::from(ClientError::Replied(Reply::TtlExpired)),
        ProtocolError::Refused("timed out")
    );
}

#[test]
fn refuses_proxies_that_misbehave() {
    for (answer, want) in [
        ("05ff", ClientError::NoMethod),
        ("0501", ClientError::Method(1)),
        ("0502", ClientError::Method(2)),
        ("0400", ClientError::Malformed("SOCKS version")),
        ("48", ClientError::Malformed("SOCKS version")),
        ("0500 0400", ClientError::Malformed("version of the reply")),
    ] {
        assert_eq!(
            every_split(plain, &hex(answer)).unwrap_err().0,
            want,
            "{answer}"
        );
    }
    for (answer, want) in [
        ("0500", ClientError::Method(0)),
        ("0502 0101", ClientError::BadCredentials),
        ("0502 01ff", ClientError::BadCredentials),
    ] {
        assert_eq!(every_split(with_auth, &hex(answer)).unwrap_err().0, want);
    }
    let long = || {
        let auth = Some(("u".into(), "p".repeat(256)));
        Socks5Connect::new(Command::Connect, to("a:1"), auth)
    };
    let (why, sent) = every_split(long, &[5, 2]).unwrap_err();
    assert_eq!((why, sent), (ClientError::CredentialsForm, vec![]));
}

#[test]
fn socks4a_sends_what_curl_sends() {
    let named = || Socks4Connect::new(Command::Connect, to("example.test:80"), None);
    let (step, sent, left) = every_split(named, &hex("005a 0050 01020304 77")).unwrap();
    assert_eq!(step, HandshakeProgress::Done(to("1.2.3.4:80")));
    assert_eq!(sent, hex("0401005000000001006578616d706c652e7465737400"));
    assert_eq!(left, [0x77]);
    let literal = || Socks4Connect::new(Command::Connect, to("1.2.3.4:81"), Some("uid".into()));
    let (_, sent, _) = every_split(literal, &hex("005a 0000 00000000")).unwrap();
    assert_eq!(sent, hex("04 01 0051 01020304 75696400"));

    for (answer, want) in [
        ("005b", ClientError::Replied(Reply::GeneralFailure)),
        ("005c", ClientError::Replied(Reply::NotAllowed)),
        ("005d", ClientError::Replied(Reply::NotAllowed)),
        ("0000", ClientError::UnknownReply(0)),
        ("045a", ClientError::Malformed("version of the reply")),
    ] {
        assert_eq!(
            every_split(named, &hex(answer)).unwrap_err().0,
            want,
            "{answer}"
        );
    }
}

#[test]
fn socks4a_refuses_what_it_cannot_say() {
    for (command, target, user) in [
        (Command::UdpAssociate, "a:1", None),
        (Command::Connect, "[2001:db8::1]:1", None),
        (Command::Connect, "0.0.0.9:1", None),
        (Command::Connect, "a:1", Some("u\0x".to_owned())),
        (Command::Connect, "a:1", Some("u".repeat(256))),
    ] {
        let new = || Socks4Connect::new(command, to(target), user.clone());
        let (why, sent) = every_split(new, &[]).unwrap_err();
        assert!(sent.is_empty(), "{why}");
    }
}

#[test]
fn bind_has_a_second_reply() {
    let v5 = hex("05 00 00 01 01020304 0050 01");
    let (step, sent, left) = every_split(|| second_reply(Version::V5), &v5).unwrap();
    assert_eq!(
        (step, sent, left),
        (HandshakeProgress::Done(to("1.2.3.4:80")), vec![], vec![1])
    );
    let v4 = hex("00 5a 0050 01020304 01");
    let (step, ..) = every_split(|| second_reply(Version::V4), &v4).unwrap();
    assert_eq!(step, HandshakeProgress::Done(to("1.2.3.4:80")));
    assert_eq!(
        every_split(|| second_reply(Version::V5), &[5, 6])
            .unwrap_err()
            .0,
        ClientError::Replied(Reply::TtlExpired)
    );
}

/// Runs two handshakes against each other until both are done.
fn pair<C, S>(mut client: C, mut server: S) -> (Target, adit_socks::Request)
where
    C: Handshake<Output = Target, Error = ClientError>,
    S: Handshake<Output = adit_socks::Request, Error: std::fmt::Debug>,
{
    let (mut up, mut down, mut request) = (Vec::new(), Vec::new(), None);
    for _ in 0..8 {
        let mut sent = Vec::new();
        let mut rx = HandshakeInput::new(&mut down);
        if let HandshakeProgress::Done(bound) = client
            .step(&mut rx, &mut HandshakeOutput::new(&mut sent))
            .unwrap()
        {
            return (bound, request.unwrap());
        }
        let eaten = rx.consumed();
        down.drain(..eaten);
        up.extend(sent);
        if request.is_some() {
            continue;
        }
        let mut rx = HandshakeInput::new(&mut up);
        if let HandshakeProgress::Done(done) = server
            .step(&mut rx, &mut HandshakeOutput::new(&mut down))
            .unwrap()
        {
            let bound = Some("198.51.100.7:1234".parse().unwrap());
            down.extend(encode_reply(done.version, Reply::Succeeded, bound));
            request = Some(done);
        }
        let eaten = rx.consumed();
        up.drain(..eaten);
    }
    panic!("the handshakes do not end");
}

#[test]
fn our_client_and_our_server_agree() {
    for target in ["example.test:80", "192.0.2.1:1", "[2001:db8::1]:65535"] {
        let new = |auth| Socks5Connect::new(Command::Connect, to(target), auth);
        for (bound, request) in [
            pair(new(None), Socks5::new(&Open)),
            pair(new(auth()), Socks5::new(&User)),
            pair(new(auth()).with_optional_auth(), Socks5::new(&User)),
            pair(new(auth()).with_pipelining(), Socks5::new(&User)),
        ] {
            assert_eq!(bound, to("198.51.100.7:1234"));
            assert_eq!(request.target, to(target));
        }
        if !target.starts_with('[') {
            let client = Socks4Connect::new(Command::Connect, to(target), Some("me".into()));
            let (bound, request) = pair(client, Socks4::new(true));
            assert_eq!(bound, to("198.51.100.7:1234"));
            assert_eq!(request.target, to(target));
        }
    }
}

#[test]
fn no_password_is_printed() {
    let text = format!("{:?}", with_auth());
    assert!(!text.contains("pw") && !text.contains("user"), "{text}");
}

proptest! {
    #[test]
    fn any_answer_is_handled(
        start in proptest::sample::select(vec!["", "0500", "0500050000", "050005000003", "0502", "05020100"]),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let input = [hex(start), noise].concat();
        for new in [plain, with_auth] {
            if let Ok((HandshakeProgress::NeedMore { total }, ..)) = every_split(new, &input) {
                prop_assert!(total <= 262);
            }
        }
        let new = || Socks4Connect::new(Command::Bind, to("a:1"), None);
        if let Ok((HandshakeProgress::NeedMore { total }, ..)) = every_split(new, &input) {
            prop_assert!(total <= 8);
        }
    }
}
