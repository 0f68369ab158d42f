//! The request's body.

use adit_http::Framing;
use adit_http::body::{BodyOpen, exchange_codecs};
use adit_wire::codec_laws::{open_all, seal_all};
use adit_wire::{Open, Opened, ProtocolError};
use proptest::prelude::*;

/// Returns the forwarded bytes and the number of remaining bytes; both are the same in every split.
fn pass(framing: Framing, wire: &[u8]) -> Result<(Vec<u8>, usize), ProtocolError> {
    let whole = open_all(&mut BodyOpen::new(framing), wire, &[wire.len()]);
    for pieces in [&[1][..], &[2, 3], &[7, 1, 1]] {
        let other = open_all(&mut BodyOpen::new(framing), wire, pieces);
        assert_eq!(whole, other, "{pieces:?}");
    }
    whole
}

#[test]
fn a_body_without_bytes_ends_before_the_first_one() {
    for framing in [Framing::None, Framing::Length(0)] {
        let mut body = BodyOpen::new(framing);
        assert!(body.is_at_boundary(9));
        assert_eq!(body.open(&mut []), Ok(Opened::End));
        assert_eq!(body.open(&mut [1, 2]), Ok(Opened::End));
    }
}

#[test]
fn a_length_is_kept_to_the_byte() {
    assert_eq!(
        pass(Framing::Length(5), b"helloGET "),
        Ok((b"hello".to_vec(), 4))
    );
    let mut body = BodyOpen::new(Framing::Length(5));
    assert!(!body.is_at_boundary(0));
    assert_eq!(body.open(&mut []), Ok(Opened::NeedMore { total: 1 }));
    let mut huge = BodyOpen::new(Framing::Length(u64::MAX));
    assert!(matches!(
        huge.open(&mut [0; 9]),
        Ok(Opened::Record { consumed: 9, .. })
    ));
    assert_eq!(pass(Framing::UntilClose, b"abc"), Ok((b"abc".to_vec(), 0)));
    assert!(BodyOpen::new(Framing::UntilClose).is_at_boundary(0));
}

const CHUNKED: &[u8] =
    b"5\r\nhello\r\n00A;x=\"y z\";w\r\n0123456789\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n";

#[test]
fn chunks_pass_unchanged_and_end() {
    let wire = [CHUNKED, b"GET http://evil/"].concat();
    assert_eq!(pass(Framing::Chunked, &wire), Ok((CHUNKED.to_vec(), 16)));
    for cut in 0..CHUNKED.len() {
        let mut body = BodyOpen::new(Framing::Chunked);
        let got = open_all(&mut body, &CHUNKED[..cut], &[cut.max(1)]).unwrap();
        assert_eq!(got, (CHUNKED[..cut].to_vec(), 0));
        assert!(!body.is_at_boundary(0), "cut at {cut}");
    }
}

#[test]
fn chunks_are_strict() {
    for wire in [
        "\r\n",
        ";x\r\n",
        " 5\r\n",
        "5 \r\n",
        "5\t;x\r\n",
        "0x5\r\n",
        "+5\r\n",
        "-5\r\n",
        "g\r\n",
        "5\n",
        "5\rh",
        "5;x\n",
        "5;\u{1}\r\n",
        "5\r\nhello!",
        "5\r\nhello\n",
        "5\r\nhello\rx",
        "0\r\n\n",
        "0\r\n X: y\r\n",
        "0\r\nX y: z\r\n",
        "0\r\n: z\r\n",
        "0\r\nX\r\n",
        "0\r\nX: y\n",
        "0\r\nX: y\r\r\n",
        "0\r\n\r\r",
        "10000000000000000\r\n",
        "00000000000000001\r\n",
    ] {
        let got = pass_error(wire.as_bytes());
        assert_eq!(got, ProtocolError::Malformed("chunked body"), "{wire:?}");
    }
    for (wire, limit) in [
        (format!("5;{}\r\n", "x".repeat(1 << 10)), 1 << 10),
        (format!("0\r\nX: {}", "y".repeat(8 << 10)), 8 << 10),
        (format!("0\r\n{}", "X:y\r\n".repeat(2 << 10)), 8 << 10),
    ] {
        let got = pass_error(wire.as_bytes());
        assert!(matches!(got, ProtocolError::TooLong { limit: l, .. } if l == limit));
    }
    // The maximum size.
    let most = b"ffffffffffffffff\r\nabc";
    assert_eq!(pass(Framing::Chunked, most), Ok((most.to_vec(), 0)));
}

fn pass_error(wire: &[u8]) -> ProtocolError {
    pass(Framing::Chunked, wire).expect_err("must be refused")
}

/// A second implementation of RFC 9112 section 7.1, over the whole input. Returns the length of the
/// body; `None` if it is incomplete or invalid.
fn reference(wire: &[u8]) -> Option<usize> {
    fn line(wire: &[u8], at: usize) -> Option<(&[u8], usize)> {
        let len = wire.get(at..)?.windows(2).position(|two| two == b"\r\n")?;
        let line = &wire[at..at + len];
        let text = |b: &u8| matches!(b, 0x09 | 0x20..=0x7e | 0x80..=0xff);
        line.iter().all(text).then_some((line, at + len + 2))
    }
    let mut at = 0;
    loop {
        let (head, after) = line(wire, at)?;
        let digits = head.split(|b| *b == b';').next()?;
        let hex = std::str::from_utf8(digits).ok()?;
        if hex.is_empty() || hex.len() > 16 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let size = usize::from_str_radix(hex, 16).ok()?;
        at = after;
        if size == 0 {
            break;
        }
        at = at.checked_add(size)?.checked_add(2)?;
        if wire.get(at - 2..at)? != b"\r\n" {
            return None;
        }
    }
    loop {
        let (field, after) = line(wire, at)?;
        at = after;
        if field.is_empty() {
            return Some(at);
        }
        let colon = field.iter().position(|b| *b == b':')?;
        let name = &field[..colon];
        let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
        if name.is_empty() || !name.iter().all(token) {
            return None;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn chunks_equal_a_simple_reference(
        sizes in proptest::collection::vec(1usize..40, 0..4),
        tail in proptest::sample::select(vec!["0\r\n\r\n", "000;x\r\nA: b\r\n\r\n", "0\r\nA:\r\nB: \t\r\n\r\nmore"]),
        moves in proptest::collection::vec(
            (any::<proptest::sample::Index>(), 0..3, proptest::sample::select(b"\r\n\t ;:0159afFgX\0\x80".to_vec())), 0..3),
    ) {
        let mut wire = Vec::new();
        for size in sizes {
            wire.extend(format!("{size:X}\r\n{}\r\n", "\n".repeat(size)).bytes());
        }
        wire.extend(tail.bytes());
        for (at, kind, byte) in moves {
            let at = at.index(wire.len());
            match kind {
                0 => wire[at] = byte,
                1 => wire.insert(at, byte),
                _ => _ = wire.remove(at),
            }
        }
        let mut body = BodyOpen::new(Framing::Chunked);
        let got = open_all(&mut body, &wire, &[5, 1, 17]);
        let ended = got.is_ok() && body.is_at_boundary(0);
        match reference(&wire) {
            Some(len) => {
                prop_assert!(ended, "{:?}", got);
                prop_assert_eq!(got.unwrap(), (wire[..len].to_vec(), wire.len() - len));
            }
            None => prop_assert!(!ended),
        }
    }

    #[test]
    fn any_bytes_are_handled(
        start in proptest::sample::select(vec!["", "3\r\nabc\r\n", "0\r\n", "1;"]),
        noise in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        drop(pass(Framing::Chunked, &[start.as_bytes(), &noise].concat()));
    }
}

#[test]
fn bytes_behind_an_upgrade_wait_for_the_origin() {
    let early = &mut b"frame"[..].to_vec();
    let (mut open, mut seal) = exchange_codecs(Framing::None, true, false);
    assert_eq!(open.open(early), Ok(Opened::NeedMore { total: 6 }));
    assert!(!open.is_at_boundary(5) && open.is_at_boundary(0));
    let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    seal_all(&mut seal, head, 1000).unwrap();
    assert!(matches!(
        open.open(early),
        Ok(Opened::Record { consumed: 5, .. })
    ));

    let (mut open, mut seal) = exchange_codecs(Framing::None, true, false);
    seal_all(
        &mut seal,
        b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
        1000,
    )
    .unwrap();
    assert_eq!(open.open(early), Ok(Opened::End));
    assert!(open.is_at_boundary(5));

    let (mut open, _seal) = exchange_codecs(Framing::None, true, false);
    assert!(open.open(&mut vec![0; 16 << 10]).is_err());
}
