//! The name of a server in the first bytes of its client, for rules about names.
//!
//! A request for an address has no name that a rule could match, but the bytes that follow often do: the server
//! name of a TLS ClientHello (RFC 6066 section 3), or the `Host` of an HTTP/1 request (RFC 9110 section 7.2).
//! Nothing proves such a name. It is of use to choose a path to the address, and never to choose another address.

use adit_wire::{HandshakeProgress, Host, Name};

/// Maximum number of first bytes that are examined.
pub const MAX_SNIFFED_BYTES: usize = 16 << 10;

/// Record type of a TLS handshake (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;
/// Length of the header of a TLS record, in bytes.
const RECORD_HEADER: usize = 5;
/// Maximum length of the payload of a TLS record without encryption, in bytes (RFC 8446 section 5.1).
const MAX_RECORD: usize = 1 << 14;
/// Message type of a ClientHello (RFC 8446 section 4).
const CLIENT_HELLO: u8 = 1;
/// Length of the header of a handshake message, in bytes.
const MESSAGE_HEADER: usize = 4;
/// Length of a ClientHello's version and random, in bytes.
const VERSION_AND_RANDOM: usize = 2 + 32;
/// Extension type of the server name (RFC 6066 section 3).
const SERVER_NAME: u16 = 0;
/// Name type of a host name (RFC 6066 section 3).
const HOST_NAME: u8 = 0;
/// Maximum length of a host name, in bytes.
const MAX_NAME: usize = 255;
/// Maximum length of the method of an HTTP request, in bytes.
const MAX_METHOD: usize = 24;

/// Returns the name of the server in `first`, the first bytes of a client.
///
/// The handshake of TLS may be split over any number of records. If the ClientHello is encrypted (ECH), the name is
/// that of its outer part, which is public. The name of an HTTP request is that of its first `Host` field. HTTP/2
/// without TLS and other protocols have no name here, and neither has a request whose name is an address or has
/// bytes other than letters, digits, `-`, `_` and `.`.
///
/// [`HandshakeProgress::NeedMore`] means that the result depends on further bytes: call again with at least `total` bytes, which is
/// at most [`MAX_SNIFFED_BYTES`].
///
/// # Examples
///
/// ```
/// use adit_rules::sniff::sniff_name;
/// use adit_wire::{Name, HandshakeProgress};
///
/// let request = b"GET / HTTP/1.1\r\nHost: www.example:8080\r\n\r\n";
/// assert_eq!(sniff_name(request), HandshakeProgress::Done(Some(Name::new("www.example")?)));
/// assert_eq!(sniff_name(b"SSH-2.0-client\r\n"), HandshakeProgress::Done(None));
/// assert_eq!(sniff_name(b""), HandshakeProgress::NeedMore { total: 1 });
/// # Ok::<(), adit_wire::TargetError>(())
/// ```
#[must_use]
pub fn sniff_name(first: &[u8]) -> HandshakeProgress<Option<Name>> {
    let first = adit_wire::subslice(first, ..first.len().min(MAX_SNIFFED_BYTES));
    let found = match first.first() {
        None => Err(Stop::NeedMore { total: 1 }),
        Some(&HANDSHAKE) => HelloReader::new(first).server_name(),
        Some(byte) if byte.is_ascii_uppercase() => http_host(first),
        Some(_) => Err(Stop::NoName),
    };
    match found {
        Ok(name) => HandshakeProgress::Done(host_name(name.bytes())),
        Err(Stop::NeedMore { total }) if total <= MAX_SNIFFED_BYTES => {
            HandshakeProgress::NeedMore { total }
        }
        Err(_) => HandshakeProgress::Done(None),
    }
}

/// The header of a TLS record, as far as it has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsRecordHeader {
    /// The type of the content.
    pub kind: u8,
    /// The number of bytes in the record, including the header; `None` if the header is incomplete.
    pub total: Option<usize>,
}

impl TlsRecordHeader {
    /// Parses the header at the start of `bytes`; returns `None` if there are none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let kind = *bytes.first()?;
        let length = match bytes {
            [_, _, _, high, low, ..] => Some(usize::from(u16::from_be_bytes([*high, *low]))),
            _ => None,
        };
        let total = length.map(|length| RECORD_HEADER + length);
        Some(Self { kind, total })
    }
}

/// The reason why there is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// At least `total` bytes are required.
    NeedMore { total: usize },
    /// There is no name, or it is not understood.
    NoName,
}

/// The bytes of a name.
struct FoundName {
    text: [u8; MAX_NAME],
    len: usize,
}

impl FoundName {
    fn bytes(&self) -> &[u8] {
        adit_wire::subslice(&self.text, ..self.len)
    }
}

/// Returns the name if it is one of a host.
fn host_name(text: &[u8]) -> Option<Name> {
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let text = core::str::from_utf8(text).ok()?;
    match Host::parse(text) {
        Ok(Host::Name(name)) if text.as_bytes().iter().all(known) => Some(name),
        _ => None,
    }
}

/// Reads a ClientHello across the borders of records.
struct HelloReader<'a> {
    bytes: &'a [u8],
    /// Number of bytes read, including the headers of records.
    at: usize,
    /// Number of bytes that follow in the record.
    in_record: usize,
    /// Number of bytes that follow in the enclosing field.
    in_field: usize,
}

impl<'a> HelloReader<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            in_record: 0,
            in_field: MESSAGE_HEADER,
        }
    }

    fn server_name(&mut self) -> Result<FoundName, Stop> {
        if self.u8()? != CLIENT_HELLO {
            return Err(Stop::NoName);
        }
        let (high, low) = (self.u8()?, self.u16()?);
        self.in_field = usize::from(high) << 16 | usize::from(low);
        self.skip(VERSION_AND_RANDOM)?;
        let session_id = self.u8()?;
        self.skip(session_id.into())?;
        let suites = self.u16()?;
        self.skip(suites.into())?;
        let compressions = self.u8()?;
        self.skip(compressions.into())?;
        self.enter_field()?;
        while self.in_field > 0 {
            let (kind, length) = (self.u16()?, self.u16()?);
            if kind == SERVER_NAME {
                return self.first_host_name();
            }
            self.skip(length.into())?;
        }
        Err(Stop::NoName)
    }

    /// Reads a list of server names, of which only one type exists.
    fn first_host_name(&mut self) -> Result<FoundName, Stop> {
        self.enter_field()?;
        if self.u8()? != HOST_NAME {
            return Err(Stop::NoName);
        }
        let len = usize::from(self.u16()?);
        let mut text = [0; MAX_NAME];
        let name = text.get_mut(..len).ok_or(Stop::NoName)?;
        for byte in name {
            *byte = self.u8()?;
        }
        Ok(FoundName { text, len })
    }

    /// Reads the length of a field, which nothing follows in the enclosing field that is read.
    fn enter_field(&mut self) -> Result<(), Stop> {
        let length = usize::from(self.u16()?);
        if length > self.in_field {
            return Err(Stop::NoName);
        }
        self.in_field = length;
        Ok(())
    }

    fn u16(&mut self) -> Result<u16, Stop> {
        Ok(u16::from_be_bytes([self.u8()?, self.u8()?]))
    }

    fn u8(&mut self) -> Result<u8, Stop> {
        self.skip(1)?;
        let read = self.bytes.get(self.at - 1);
        read.copied().ok_or(Stop::NoName)
    }

    /// Skips `n` bytes of the message.
    fn skip(&mut self, mut n: usize) -> Result<(), Stop> {
        self.in_field = self.in_field.checked_sub(n).ok_or(Stop::NoName)?;
        while n > 0 {
            if self.in_record == 0 {
                self.enter_record()?;
            }
            let part = n.min(self.in_record);
            if self.bytes.len() - self.at < part {
                let total = self.at + part;
                return Err(Stop::NeedMore { total });
            }
            self.at += part;
            self.in_record -= part;
            n -= part;
        }
        Ok(())
    }

    fn enter_record(&mut self) -> Result<(), Stop> {
        let rest = adit_wire::subslice(self.bytes, self.at..);
        let require = |count: usize| Stop::NeedMore {
            total: self.at + count,
        };
        let header = TlsRecordHeader::parse(rest).ok_or_else(|| require(1))?;
        let major = rest.get(1).copied();
        if header.kind != HANDSHAKE || major.is_some_and(|major| major != 3) {
            return Err(Stop::NoName);
        }
        let known = if major.is_some() { RECORD_HEADER } else { 2 };
        let length = header.total.ok_or_else(|| require(known))? - RECORD_HEADER;
        // An empty record of a handshake is forbidden.
        if length == 0 || length > MAX_RECORD {
            return Err(Stop::NoName);
        }
        self.at += RECORD_HEADER;
        self.in_record = length;
        Ok(())
    }
}

/// Returns the host of an HTTP/1 request.
fn http_host(bytes: &[u8]) -> Result<FoundName, Stop> {
    let more = Err(Stop::NeedMore {
        total: bytes.len() + 1,
    });
    let letters = bytes.iter().take_while(|byte| byte.is_ascii_uppercase());
    let method = letters.count();
    match bytes.get(method) {
        None if method <= MAX_METHOD => return more,
        Some(b' ') if method <= MAX_METHOD => {}
        _ => return Err(Stop::NoName),
    }
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    match lines.next().and_then(|line| line.strip_suffix(b"\n")) {
        None => return more,
        Some(line) if is_request_line(line) => {}
        Some(_) => return Err(Stop::NoName),
    }
    for line in lines {
        let Some(line) = line.strip_suffix(b"\n") else {
            return more;
        };
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return Err(Stop::NoName);
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"host") {
            let host = value.strip_prefix(b":").map(<[u8]>::trim_ascii);
            return without_port(host.unwrap_or_default());
        }
    }
    more
}

/// True for a line of a request for HTTP/1.0 or HTTP/1.1.
fn is_request_line(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0")
}

fn without_port(host: &[u8]) -> Result<FoundName, Stop> {
    let (host, port) = match host.iter().position(|byte| *byte == b':') {
        Some(colon) => host.split_at(colon),
        None => (host, &[][..]),
    };
    let port = port.strip_prefix(b":").unwrap_or(port);
    let mut text = [0; MAX_NAME];
    let name = text.get_mut(..host.len()).ok_or(Stop::NoName)?;
    if !port.iter().all(u8::is_ascii_digit) {
        return Err(Stop::NoName);
    }
    name.copy_from_slice(host);
    let len = host.len();
    Ok(FoundName { text, len })
}
