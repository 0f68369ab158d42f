//! The question whether the first bytes of a client may be sent to a second server.

use adit_rules::sniff::TlsRecordHeader;
use adit_wire::subslice;

/// Methods of HTTP that have no effect at the server (RFC 9110 section 9.2.1).
const SAFE_METHODS: [&[u8]; 4] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE"];
/// Maximum length of a command word.
const MAX_WORD: usize = 24;
/// The preface of HTTP/2 without TLS (RFC 9113 section 3.4); any request can follow it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Record types of TLS (RFC 8446 section 5.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;

/// Returns true if `bytes`, the first of a connection, may be sent to a second server while it is unknown what
/// has become of the first.
///
/// * The handshake of TLS has no effect on the application. Early data (0-RTT) may have one, so it is not
///   repeated.
/// * A request of plain HTTP is repeated if its method is safe. The same rule applies to every text that starts
///   with a word of letters and a space, as commands of other protocols do: unless the word is a safe method,
///   it is not repeated. Neither is a body, a second request, or a RESP array (Redis).
/// * Other bytes are the greeting of a protocol, and are repeated.
pub(super) fn is_repeatable(bytes: &[u8]) -> bool {
    match bytes.first() {
        None => true,
        Some(&HANDSHAKE) => is_tls_handshake(bytes),
        Some(b'*') => false,
        Some(first) if first.is_ascii_alphabetic() => is_repeatable_text(bytes),
        Some(_) => true,
    }
}

/// Returns true if all records, the last of which may be incomplete, belong to the handshake.
fn is_tls_handshake(mut bytes: &[u8]) -> bool {
    while let Some(record) = TlsRecordHeader::parse(bytes) {
        if !matches!(record.kind, HANDSHAKE | CHANGE_CIPHER_SPEC) {
            return false;
        }
        let Some(total) = record.total else {
            return true;
        };
        bytes = subslice(bytes, total.min(bytes.len())..);
    }
    true
}

fn is_repeatable_text(bytes: &[u8]) -> bool {
    let start = subslice(bytes, ..bytes.len().min(MAX_WORD));
    let letters = |byte: &&u8| byte.is_ascii_alphabetic();
    let word = subslice(start, ..start.iter().take_while(letters).count());
    match bytes.get(word.len()) {
        // The word may be longer.
        None => false,
        Some(b' ') => {
            SAFE_METHODS.contains(&word)
                && !bytes.starts_with(HTTP2_PREFACE)
                && !has_second_request(bytes)
        }
        Some(_) => true,
    }
}

/// Returns true if bytes follow the head of a request: its body, or another request.
fn has_second_request(bytes: &[u8]) -> bool {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| end + 4 < bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, length: u8) -> Vec<u8> {
        let mut record = vec![kind, 3, 1, 0, length];
        record.resize(5 + usize::from(length), 7);
        record
    }

    #[test]
    fn only_what_has_no_effect_is_repeated() {
        for yes in [
            &b""[..],
            b"GET / HTTP/1.1\r\n",
            b"HEAD /x HTTP/1.1\r\nHost: y\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\n",
            b"SSH-2.0-OpenSSH_9.6 Debian-1\r\n",
            b"\x13BitTorrent protocol",
            b"HELLO\r\n",
        ] {
            assert!(is_repeatable(yes), "{yes:?}");
        }
        for no in [
            &b"POST / HTTP/1.1\r\n"[..],
            b"PUT /x HTTP/1.1\r\n",
            b"DELETE /x HTTP/1.1\r\n",
            b"get / HTTP/1.1\r\n",
            b"PO",
            b"GET",
            b"INCR counter\r\n",
            b"*2\r\n$4\r\nINCR\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert!(!is_repeatable(no), "{no:?}");
        }
    }

    #[test]
    fn early_data_is_not_repeated() {
        let hello = record(HANDSHAKE, 200);
        assert!(is_repeatable(&hello));
        for cut in 1..hello.len() {
            assert!(is_repeatable(&hello[..cut]));
        }
        let changed = [hello.clone(), record(CHANGE_CIPHER_SPEC, 1)].concat();
        assert!(is_repeatable(&changed));
        let early = [changed, record(23, 40)].concat();
        assert!(!is_repeatable(&early));
    }
}
