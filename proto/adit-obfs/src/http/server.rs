//! A server's parser of request heads.

use adit_wire::{HandshakeInput, HandshakeProgress, ProtocolError, subslice};

use super::{MAX_HEAD, head_end};

/// Minimum number of bytes in the URL.
const MIN_URL_BYTES: usize = 4;
/// Minimum number of bytes in total, in the URL and after the head.
const MIN_TOTAL_BYTES: usize = 13;

/// Reads one request head.
#[derive(Default)]
pub(crate) struct RequestReader {
    /// No blank line ends before this offset.
    scanned: usize,
}

impl RequestReader {
    /// Removes the head: `rx` then contains the bytes of the URL and all following bytes. Until
    /// then, and after an error, `rx` is unchanged. Only `hosts` are accepted, if there are any.
    pub(crate) fn read_head(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        hosts: &[Box<str>],
    ) -> Result<HandshakeProgress<()>, ProtocolError> {
        let bytes = rx.bytes();
        if !may_begin(bytes, b"GET ") && !may_begin(bytes, b"POST ") {
            return Err(ProtocolError::Malformed("http: not GET or POST"));
        }
        let end = head_end(bytes, self.scanned);
        if end.unwrap_or(bytes.len()) > MAX_HEAD {
            let what = "http: the head";
            let limit = MAX_HEAD;
            return Err(ProtocolError::TooLong { what, limit });
        }
        let Some(end) = end else {
            self.scanned = bytes.len().saturating_sub(3);
            let total = bytes.len() + 1;
            return Ok(HandshakeProgress::NeedMore { total });
        };
        self.scanned = end - 4;
        let head = subslice(bytes, ..end);
        let hidden = hidden_bytes(head);
        if hidden.len() < MIN_URL_BYTES {
            return Err(ProtocolError::Malformed("http: no data in the URL"));
        }
        if !hosts.is_empty() && !host_of(head).is_some_and(|host| is_one_of(host, hosts)) {
            return Err(ProtocolError::Malformed("http: another host"));
        }
        let total = end + MIN_TOTAL_BYTES.saturating_sub(hidden.len());
        if bytes.len() < total {
            return Ok(HandshakeProgress::NeedMore { total });
        }
        // Each byte took three characters of the URL, so there is room in front of the body.
        let start = end - hidden.len();
        if let Some(place) = rx.bytes_mut().get_mut(start..end) {
            place.copy_from_slice(&hidden);
        }
        rx.consume(start);
        Ok(HandshakeProgress::Done(()))
    }
}

/// True if `bytes` may be the start of text that begins with `word`.
fn may_begin(bytes: &[u8], word: &[u8]) -> bool {
    bytes.iter().zip(word).all(|(a, b)| a == b)
}

fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Returns the bytes `%hh` of the first line; the version follows the last of them.
fn hidden_bytes(head: &[u8]) -> Vec<u8> {
    let line = head_lines(head).next().unwrap_or_default();
    let mut hidden = Vec::with_capacity(line.len() / 3);
    for item in line.split(|b| *b == b'%').skip(1) {
        let Some((digits, rest)) = item.split_first_chunk::<2>() else {
            break;
        };
        let Some(byte) = parse_hex_byte(*digits) else {
            break;
        };
        hidden.push(byte);
        if !rest.is_empty() {
            break;
        }
    }
    hidden
}

fn parse_hex_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |d: u8| {
        char::from(d)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
}

/// Returns the name in the `Host` field, without its port.
fn host_of(head: &[u8]) -> Option<&[u8]> {
    let field = head_lines(head).skip(1).find_map(|line| {
        let (name, value) = line.split_at_checked(5)?;
        name.eq_ignore_ascii_case(b"host:").then_some(value)
    })?;
    let field = field.trim_ascii();
    if let Some(v6) = field.strip_prefix(b"[") {
        return v6.split(|b| *b == b']').next();
    }
    field.split(|b| *b == b':').next()
}

fn is_one_of(host: &[u8], hosts: &[Box<str>]) -> bool {
    let bare = |h: &str| h.trim_matches(['[', ']']).as_bytes().to_vec();
    hosts.iter().any(|h| bare(h).eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        wire: &[u8],
        hosts: &[&str],
    ) -> Result<(HandshakeProgress<()>, Vec<u8>), ProtocolError> {
        let hosts: Vec<Box<str>> = hosts.iter().map(|h| (*h).into()).collect();
        let mut wire = wire.to_vec();
        let mut rx = HandshakeInput::new(&mut wire);
        let step = RequestReader::default().read_head(&mut rx, &hosts);
        let (left, eaten) = (rx.bytes().to_vec(), rx.consumed());
        if !matches!(step, Ok(HandshakeProgress::Done(()))) {
            assert_eq!(eaten, 0);
        }
        step.map(|step| (step, left))
    }

    const WIRE: &[u8] = b"GET /%01%02%03%fF HTTP/1.1\r\nhost: A.com:80\r\n\r\n123456789";

    #[test]
    fn the_url_comes_before_the_body() {
        let plain = b"\x01\x02\x03\xff123456789".to_vec();
        assert_eq!(
            read(WIRE, &[]),
            Ok((HandshakeProgress::Done(()), plain.clone()))
        );
        assert_eq!(
            read(WIRE, &["b.com", "a.com"]),
            Ok((HandshakeProgress::Done(()), plain))
        );
        let why = ProtocolError::Malformed("http: another host");
        assert_eq!(read(WIRE, &["com"]), Err(why));
        let why = ProtocolError::Malformed("http: not GET or POST");
        assert_eq!(read(b"PUT /%01", &[]), Err(why));
        assert_eq!(read(b"\x01", &[]), Err(why));
    }

    #[test]
    fn waits_for_the_blank_line_and_thirteen_bytes() {
        for end in 0..WIRE.len() {
            let step = read(&WIRE[..end], &[]).unwrap().0;
            assert!(
                matches!(step, HandshakeProgress::NeedMore { total } if total > end && total <= WIRE.len()),
                "{end}"
            );
        }
    }

    #[test]
    fn url_bytes_end_at_the_first_that_is_no_pair() {
        for (line, hidden) in [
            ("GET /%41%42%43%44%45 HTTP/1.1", "ABCDE"),
            ("GET /%41%4", "A"),
            ("GET /%41x%42", "A"),
            ("GET /%41%zz%42", "A"),
            ("GET /%+1%42", ""),
            ("GET / HTTP/1.1", ""),
        ] {
            assert_eq!(hidden_bytes(line.as_bytes()), hidden.as_bytes(), "{line}");
        }
        let why = ProtocolError::Malformed("http: no data in the URL");
        assert_eq!(read(b"GET /%41%42%43 HTTP/1.1\r\n\r\n", &[]), Err(why));
    }

    #[test]
    fn hosts_lose_their_ports() {
        for (field, host) in [
            ("a.com:80", "a.com"),
            ("a.com", "a.com"),
            ("[::1]:80", "::1"),
        ] {
            let head = format!("GET / HTTP/1.1\r\nX: y\r\nHost: {field}\r\n\r\n");
            assert_eq!(host_of(head.as_bytes()), Some(host.as_bytes()));
            assert!(is_one_of(
                host.as_bytes(),
                &[field.trim_end_matches(":80").into()]
            ));
        }
    }

    #[test]
    fn the_head_is_bounded_whole_and_in_pieces() {
        let why = ProtocolError::TooLong {
            what: "http: the head",
            limit: MAX_HEAD,
        };
        let mut wire = b"GET /".to_vec();
        wire.resize(MAX_HEAD, b'a');
        assert!(matches!(
            read(&wire, &[]),
            Ok((HandshakeProgress::NeedMore { .. }, _))
        ));
        wire.extend(b"\r\n\r\n");
        assert_eq!(read(&wire, &[]), Err(why));
        assert_eq!(read(&wire[..MAX_HEAD + 1], &[]), Err(why));
    }
}
