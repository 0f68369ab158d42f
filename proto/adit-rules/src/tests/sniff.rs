//! Names in the first bytes of clients.

use adit_wire::{HandshakeProgress, Name};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use crate::sniff::{MAX_SNIFFED_BYTES, sniff_name};

/// A ClientHello of OpenSSL 3.0: `openssl s_client -servername www.sniffed.example`.
const OPENSSL_HELLO: &[u8] = include_bytes!("client_hello.bin");

fn name(text: &str) -> HandshakeProgress<Option<Name>> {
    HandshakeProgress::Done(Some(Name::new(text).unwrap()))
}

/// Passes the first bytes of `all` one by one, and checks that the result stays the same from the first on that is
/// not [`HandshakeProgress::NeedMore`], and that `total` is neither too large nor too small.
fn sniff_byte_by_byte(all: &[u8]) -> HandshakeProgress<Option<Name>> {
    let mut required = 1;
    for len in 0..=all.len() {
        match sniff_name(&all[..len]) {
            HandshakeProgress::NeedMore { total } => {
                assert!(
                    total > len && total <= MAX_SNIFFED_BYTES,
                    "{total} at {len}"
                );
                assert!(total >= required, "{total} after {required}");
                required = total;
            }
            done @ HandshakeProgress::Done(_) => {
                assert!(len >= required, "{len} of {required}");
                for longer in len..=all.len() {
                    assert_eq!(sniff_name(&all[..longer]), done, "{longer} after {len}");
                }
                return done;
            }
        }
    }
    HandshakeProgress::NeedMore { total: required }
}

fn u16_prefixed(payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap();
    [&len.to_be_bytes(), payload].concat()
}

fn extension(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &u16_prefixed(payload)].concat()
}

fn server_name(kind: u8, name: &str) -> Vec<u8> {
    let entry = [&[kind][..], &u16_prefixed(name.as_bytes())].concat();
    extension(0, &u16_prefixed(&entry))
}

/// Returns the handshake message of a ClientHello.
fn hello_message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(32);
    body.extend([8; 32]);
    body.extend(u16_prefixed(&[0x2a, 0x2a, 0x13, 0x01, 0x13, 0x02]));
    body.extend([1, 0]);
    body.extend(u16_prefixed(&extensions.concat()));
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1], &len[1..], &body].concat()
}

/// Returns the message in records of the given lengths; the last length applies to all that follow.
fn records(message: &[u8], lengths: &[usize]) -> Vec<u8> {
    let (mut rest, mut out, mut at) = (message, Vec::new(), 0);
    while !rest.is_empty() {
        let length = lengths[at.min(lengths.len() - 1)].min(rest.len());
        let (record, after) = rest.split_at(length);
        out.extend([22, 3, 1]);
        out.extend(u16_prefixed(record));
        (rest, at) = (after, at + 1);
    }
    out
}

fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    records(&hello_message(extensions), &[1 << 14])
}

#[test]
fn the_name_of_a_real_hello_is_found_at_any_split() {
    assert_eq!(
        sniff_byte_by_byte(OPENSSL_HELLO),
        name("www.sniffed.example")
    );
    let message = &OPENSSL_HELLO[5..];
    for cut in 1..message.len() {
        let split = records(message, &[cut, 1 << 14]);
        assert_eq!(sniff_name(&split), name("www.sniffed.example"), "{cut}");
    }
    let single = records(message, &[1]);
    assert_eq!(sniff_byte_by_byte(&single), name("www.sniffed.example"));
}

#[test]
fn a_driver_reads_no_more_often_than_there_are_fields() {
    let (mut len, mut calls) = (0, 0);
    while let HandshakeProgress::NeedMore { total } = sniff_name(&OPENSSL_HELLO[..len]) {
        (len, calls) = (total, calls + 1);
    }
    assert!(calls < 60, "{calls} calls");
}

#[test]
fn extensions_before_the_name_are_skipped() {
    let grease = [extension(0x0a0a, &[]), extension(0xfafa, &[0])];
    let key_share = extension(51, &[9; 1216]);
    // Encrypted client hello: the name is the public one of its outer part.
    let ech = extension(0xfe0d, &[5; 300]);
    let shown = server_name(0, "Public.Example");
    let all = [
        &grease[..],
        &[key_share, ech, shown, extension(21, &[0; 9])],
    ]
    .concat();
    assert_eq!(sniff_byte_by_byte(&hello(&all)), name("Public.Example"));
}

#[test]
fn hellos_without_a_usable_name_have_none() {
    let long = "a".repeat(256);
    for (what, extensions) in [
        ("no extension", vec![]),
        (
            "no name",
            vec![extension(0x0a0a, &[]), extension(43, &[2, 3, 4])],
        ),
        ("another type of name", vec![server_name(1, "a.example")]),
        ("an address", vec![server_name(0, "192.0.2.1")]),
        ("an IPv6 address", vec![server_name(0, "2001:db8::1")]),
        ("no host name", vec![server_name(0, "a b.example")]),
        ("another byte", vec![server_name(0, "a\u{e9}.example")]),
        ("an empty name", vec![server_name(0, "")]),
        ("a long name", vec![server_name(0, &long)]),
        ("an empty list", vec![extension(0, &u16_prefixed(&[]))]),
        ("an empty extension", vec![extension(0, &[])]),
    ] {
        let found = sniff_byte_by_byte(&hello(&extensions));
        assert_eq!(found, HandshakeProgress::Done(None), "{what}");
    }
}

#[test]
fn bytes_that_only_resemble_a_hello_have_no_name() {
    let good = hello(&[server_name(0, "a.example")]);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    for (what, bytes) in [
        ("another version of the record", changed(1, 2)),
        (
            "an empty record",
            [22, 3, 1, 0, 0, 22, 3, 1, 0, 1, 1].to_vec(),
        ),
        ("a record that is too long", changed(3, 0x41)),
        ("another message", changed(5, 2)),
        ("a message that is too short", changed(8, 40)),
        ("a session id beyond the message", changed(43, 255)),
        ("another record inside the message", {
            let mut bytes = records(
                &hello_message(&[server_name(0, "a.example")]),
                &[20, 1 << 14],
            );
            bytes[25] = 23;
            bytes
        }),
    ] {
        assert_eq!(
            sniff_byte_by_byte(&bytes),
            HandshakeProgress::Done(None),
            "{what}"
        );
    }
    // The name must be in the bytes that are examined.
    let late = hello(&[
        extension(21, &vec![0; MAX_SNIFFED_BYTES - 200]),
        server_name(0, "a.example"),
    ]);
    let (low, high) = (MAX_SNIFFED_BYTES - 300, late.len());
    assert!(high < MAX_SNIFFED_BYTES && sniff_name(&late[..low]) != HandshakeProgress::Done(None));
    assert_eq!(sniff_name(&late), name("a.example"));
    let late = hello(&[
        extension(21, &vec![0; MAX_SNIFFED_BYTES - 100]),
        server_name(0, "a.example"),
    ]);
    assert_eq!(sniff_name(&late), HandshakeProgress::Done(None));
}

#[test]
fn the_host_of_a_request_is_found_at_any_split() {
    for (request, host) in [
        (
            "GET / HTTP/1.1\r\nHost: www.example\r\n\r\n",
            Some("www.example"),
        ),
        ("GET / HTTP/1.0\nhost:www.example\n\n", Some("www.example")),
        (
            "POST /a HTTP/1.1\r\nA: b\r\nHOST:\t a.example:8080 \r\n",
            Some("a.example"),
        ),
        (
            "OPTIONS * HTTP/1.1\r\nHost: a.example.\r\n",
            Some("a.example."),
        ),
        (
            "GET / HTTP/1.1\r\nX-Host: b\r\nHost: a\r\nHost: b\r\n",
            Some("a"),
        ),
        (
            "GET / HTTP/1.1\r\nX: y\r\n folded\r\nHost: a\r\n",
            Some("a"),
        ),
        ("GET / HTTP/1.1\r\nA: b\r\n\r\nHost: body\r\n", None),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", None),
        ("GET / HTTP/1.1\r\nHost: 192.0.2.1:80\r\n", None),
        ("GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n", None),
        ("GET / HTTP/1.1\r\nHost: a.example:http\r\n", None),
        ("GET / HTTP/1.1\r\nHost: user@a.example\r\n", None),
        ("GET / HTTP/2.0\r\nHost: a\r\n", None),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
        ("GET /\r\nHost: a\r\n", None),
        ("get / HTTP/1.1\r\nHost: a\r\n", None),
        ("SSH-2.0-OpenSSH_9.6\r\n", None),
        ("EHLO a.example\r\n", None),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1\r\nHost: a\r\n", None),
        ("\x13BitTorrent protocol", None),
    ] {
        let want = HandshakeProgress::Done(host.map(|host| Name::new(host).unwrap()));
        assert_eq!(sniff_byte_by_byte(request.as_bytes()), want, "{request:?}");
    }
}

#[test]
fn an_endless_head_ends_the_search() {
    let head = format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(4000));
    assert_eq!(sniff_name(head.as_bytes()), HandshakeProgress::Done(None));
    let line = "A".repeat(8) + " " + &"x".repeat(MAX_SNIFFED_BYTES);
    assert_eq!(sniff_name(line.as_bytes()), HandshakeProgress::Done(None));
    let cut = &line.as_bytes()[..MAX_SNIFFED_BYTES - 1];
    assert_eq!(
        sniff_name(cut),
        HandshakeProgress::NeedMore {
            total: MAX_SNIFFED_BYTES
        }
    );
}

fn first_bytes() -> impl Strategy<Value = Vec<u8>> {
    let changed = (0..OPENSSL_HELLO.len(), any::<u8>()).prop_map(|(at, to)| {
        let mut bytes = OPENSSL_HELLO.to_vec();
        bytes[at] = to;
        bytes
    });
    let request = "[A-Z]{1,5} [a-z /]{0,4}( HTTP/1\\.1)?\r?\n([A-Ha-z:]{0,6}\r?\n|Host: ?[a-z.:0-9]{0,9}\r\n){0,4}";
    prop_oneof![
        changed,
        request.prop_map(String::into_bytes),
        (Just(22), proptest::collection::vec(any::<u8>(), 0..80)).prop_map(|(first, rest)| [
            &[first][..],
            &rest
        ]
        .concat()),
    ]
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_the_split(bytes in first_bytes()) {
        let once = sniff_name(&bytes);
        let gradual = sniff_byte_by_byte(&bytes);
        match (&once, &gradual) {
            (HandshakeProgress::NeedMore { total }, HandshakeProgress::NeedMore { .. }) => prop_assert!(*total > bytes.len()),
            _ => prop_assert_eq!(once, gradual),
        }
    }
}
