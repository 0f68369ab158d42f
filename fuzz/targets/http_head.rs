//! The HTTP server's dialogue over arbitrary bytes, and the framed body that follows it.

#![no_main]

use adit_fuzz::{SingleUserAuth, SplitInput, split_flags};
use adit_http::MAX_HEAD;
use adit_http::body::exchange_codecs;
use adit_http::server::{Request, RequestHandshake};
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::{open_all, run_handshake};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let door = SingleUserAuth {
        required: flags & 1 != 0,
    };
    let pieces = SplitInput::new(input);
    let outcome = pieces.assert_split_independent(|bytes, pieces| {
        let head = RequestHandshake::new(&door);
        let mut head = if flags & 2 == 0 {
            head
        } else {
            head.with_via()
        };
        run_handshake(&mut head, bytes, pieces).map_err(|(why, sent)| (why.to_string(), sent))
    });
    match outcome {
        Err((_, answer)) => {
            assert!(answer.starts_with(b"HTTP/1.1 4") && answer.ends_with(b"\r\n\r\n"))
        }
        Ok((HandshakeProgress::NeedMore { .. }, _, held)) => assert!(held.len() <= MAX_HEAD),
        Ok((HandshakeProgress::Done(Request::Connect { user, .. }), ..)) => {
            assert_eq!(user.is_some(), door.required)
        }
        Ok((
            HandshakeProgress::Done(Request::Forward {
                user,
                head,
                body,
                upgrade,
                head_request,
                ..
            }),
            _,
            rest,
        )) => {
            assert_eq!(user.is_some(), door.required);
            check_rewritten(&head);
            let behind = SplitInput {
                sizes: pieces.sizes,
                bytes: &rest,
            };
            let opened = behind.assert_split_independent(|bytes, pieces| {
                let (mut open, _) = exchange_codecs(body, upgrade, head_request);
                open_all(&mut open, bytes, pieces)
            });
            if let Ok((plain, left)) = opened {
                assert!(plain.len() + left == rest.len() && rest.starts_with(&plain));
            }
        }
    }
});

/// Checks that the bytes are exactly one head, in which nothing is hidden from the origin's parser.
fn check_rewritten(head: &[u8]) {
    let end = head.windows(4).position(|four| four == b"\r\n\r\n");
    assert_eq!(
        end,
        head.len().checked_sub(4),
        "the end is the only empty line"
    );
    for (at, byte) in head.iter().enumerate() {
        match byte {
            b'\n' => assert_eq!(head.get(at.wrapping_sub(1)), Some(&b'\r'), "bare LF"),
            b'\r' => assert_eq!(head.get(at + 1), Some(&b'\n'), "bare CR"),
            0 => panic!("NUL"),
            _ => {}
        }
    }
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = text.split("\r\n");
    let start = lines.next().expect("a start line");
    assert!(
        start.ends_with(" http/1.1") || start.ends_with(" http/1.0"),
        "{start}"
    );
    let count = |name: &str| {
        text.split("\r\n")
            .skip(1)
            .filter(|line| line.starts_with(name))
            .count()
    };
    assert_eq!(count("host:"), 1, "{text}");
    for ours in [
        "proxy-authorization:",
        "proxy-authenticate:",
        "proxy-connection:",
    ] {
        assert_eq!(count(ours), 0, "{text}");
    }
    // Several Transfer-Encoding headers are one list; a length beside it is an attack.
    let (lengths, codings) = (count("content-length:"), count("transfer-encoding:"));
    assert!(lengths == 0 || (lengths, codings) == (1, 0), "{text}");
}
